"""The formats of a report. Every format is a pure function of (report, pages)."""
