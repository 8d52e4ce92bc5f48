"""Objects and areas under edit."""
