"""What we sell: GPU models, offerings, images, price books."""
