"""A differential fuzzer of the codemod: Estimator programs put together from pieces, both sides run, numbers compared.

`axes` says what pieces there are, `programs` puts them together, `sides` migrates and runs them in batches, `judging`
says what came of each, `shrinking` finds the smallest program that still fails. `tools/fuzz.py` is the command.
"""
