"""What the terminal and the page share: who sits at a table, records, advice, verdicts, words."""
