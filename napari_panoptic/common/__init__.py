"""What everything else uses: errors, text, progress."""
