"""What windows show of an evaluation: texts, table rows, label colours and marks. No Qt here."""
