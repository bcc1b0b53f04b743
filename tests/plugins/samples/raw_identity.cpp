#include "raw_identity.hpp"

const Identity kIdentity = {SAMPLE_NAME, SAMPLE_VARIANT, SAMPLE_BASE, SAMPLE_OPS, SAMPLE_PRIORITY};
