#pragma once

#include "data/registry.hpp"

namespace gpunn::data {

// CIFAR-10 and CIFAR-100 (Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009): 50000 + 10000
// colour images of 32x32, in the layout of the binary archives, unpacked or not. A record is one label byte (CIFAR-100:
// the coarse label, then the fine one), then 1024 red, 1024 green and 1024 blue bytes. Fewer records than the published
// files have are read too.
DatasetRow cifar10_row();
DatasetRow cifar100_row();

}  // namespace gpunn::data
