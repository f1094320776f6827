"""What a study found: statistics, figures, tables, a page, and what the terminal shows."""
