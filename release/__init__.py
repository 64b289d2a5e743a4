"""What a release is made of: `make release` builds and checks it, and publishes nothing."""
