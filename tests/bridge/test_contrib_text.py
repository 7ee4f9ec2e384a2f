"""VocabularyProcessor of tf.contrib.learn: the numbers that 1.15.5 gives these texts."""

from __future__ import annotations

from pathlib import Path

from migrator.bridge.homes import Kind, home_of
from migrator.bridge.library.contrib_text import CategoricalVocabulary, VocabularyProcessor, words_of_texts

TEXTS = ["the Cat sat on the mat", "the dog's mat", "HTMLParser is-a fooBar the cat cat", ""]


def test_texts_are_numbers_of_words(tmp_path: Path) -> None:
    processor = VocabularyProcessor(5)
    rows = [row.tolist() for row in processor.fit_transform(TEXTS)]
    assert rows == [[1, 2, 3, 4, 1], [1, 6, 5, 0, 0], [7, 8, 9, 10, 1], [0, 0, 0, 0, 0]]
    assert len(processor.vocabulary_) == 12
    assert list(processor.reverse([[1, 2, 0]])) == ["the Cat <UNK>"]
    processor.save(str(tmp_path / "words"))
    again = VocabularyProcessor.restore(str(tmp_path / "words"))
    assert [row.tolist() for row in again.transform(["the new cat"])] == [[1, 0, 11, 0, 0]]


def test_rare_words_are_left_out() -> None:
    processor = VocabularyProcessor(6, min_frequency=1)
    rows = [row.tolist() for row in processor.fit_transform(TEXTS)]
    assert rows[2] == [0, 0, 0, 0, 1, 2] and len(processor.vocabulary_) == 4  # the, cat, mat
    words = CategoricalVocabulary()
    for word, count in (("b", 3), ("a", 3), ("c", 9)):
        words.add(word, count)
    words.trim(1, 9)
    assert [words.get(word) for word in ("a", "b")] == [1, 2]
    assert next(words_of_texts(["HTML isn't CamelCase"])) == ["HTML", "isn't", "Camel", "Case"]


def test_modules_of_learn_by_their_names() -> None:
    for name in ("estimators.run_config.RunConfig", "python.learn.estimators.run_config.RunConfig", "RunConfig"):
        found = home_of(f"tf.contrib.learn.{name}")
        assert (found.kind, found.name, found.parts) == (Kind.SUPPORT, "LearnRunConfig", len(name.split(".")) + 3)
