"""Texts as numbers of words, as tf.contrib.learn.preprocessing had it."""

import collections
import pickle
import re

import numpy as np


class CategoricalVocabulary:
    """Words and their numbers, in the order in which they come; 0 is for those that are not known."""

    def __init__(self, unknown_token="<UNK>", support_reverse=True):
        self._words = [unknown_token]
        self._mapping = {unknown_token: 0}
        self._support_reverse = support_reverse
        self._counts = collections.defaultdict(int)
        self._frozen = False

    def __len__(self):
        return len(self._mapping)

    def freeze(self, freeze=True):
        """From now on new words are not known."""
        self._frozen = freeze

    def get(self, category):
        """The number of a word."""
        if category not in self._mapping:
            if self._frozen:
                return 0
            self._mapping[category] = len(self._words)
            self._words.append(category)
        return self._mapping[category]

    def add(self, category, count=1):
        """Counts a word."""
        if self.get(category) > 0:
            self._counts[category] += count

    def trim(self, min_frequency, max_frequency=-1):
        """Keeps the words that came more often than `min_frequency`, the most frequent first."""
        by_name = sorted(self._counts.items(), key=lambda item: (isinstance(item[0], str), item[0]))
        ordered = sorted(by_name, key=lambda item: item[1], reverse=True)
        kept = [(word, n) for word, n in ordered if n > min_frequency and not 0 < max_frequency <= n]
        self._words = [self._words[0], *(word for word, _ in kept)]
        self._mapping = {word: number for number, word in enumerate(self._words)}
        self._counts = collections.defaultdict(int, kept)

    def reverse(self, class_id):
        """The word of a number."""
        if not self._support_reverse:
            raise ValueError("This vocabulary wasn't initialized with support_reverse to support reverse() function.")
        return self._words[class_id]


def words_of_texts(iterator):
    """The words of each text."""
    for text in iterator:
        yield re.findall(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", text)


class VocabularyProcessor:
    """Texts as rows of numbers of words, `max_document_length` each; 0 where a text has ended."""

    def __init__(self, max_document_length, min_frequency=0, vocabulary=None, tokenizer_fn=None):
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or words_of_texts

    def fit(self, raw_documents, unused_y=None):
        """Learns the words of texts. Returns this object."""
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents, unused_y=None):
        """Learns the words of texts, and yields their rows."""
        return self.fit(raw_documents).transform(raw_documents)

    def transform(self, raw_documents):
        """Yields the row of each text."""
        for words in self._tokenizer(raw_documents):
            row = np.zeros(self.max_document_length, np.int64)
            known = [self.vocabulary_.get(word) for word in words[: self.max_document_length]]
            row[: len(known)] = known
            yield row

    def reverse(self, documents):
        """Yields the text of each row."""
        for row in documents:
            yield " ".join(self.vocabulary_.reverse(number) for number in row)

    def save(self, filename):
        """Writes it to a file."""
        with open(filename, "wb") as file:
            pickle.dump(self, file)

    @classmethod
    def restore(cls, filename):
        """Reads one from a file of `save`."""
        with open(filename, "rb") as file:
            return pickle.load(file)
