"""What other writers changed: fields, images and labels of children and pods that Hermetic did not render."""
