"""The cluster as a source: answers from one look (command line), or from watches that go on (operator)."""
