"""The results of a study for readers: statistics, figures, tables, a page, and the terminal."""
