"""Tables beside the objects: patients, covariates, earlier evaluations."""
