"""New code: text laid out like hand-written code, as libcst nodes."""
