"""What users receive: the operator's image and the Helm chart. No part of the wheel, and no part of the tests."""
