"""Tables, plots and HTML reports of an evaluation."""
