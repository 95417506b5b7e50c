"""The provider `local`."""
