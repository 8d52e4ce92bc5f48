"""Why objects failed: policies, groups, consensus, what-if."""
