"""One report told in seven ways. Every format is a pure function of (report, pages)."""
