"""Review packages: pages for reviewers who have only a browser, and the files they send back."""
