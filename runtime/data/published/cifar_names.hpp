#pragma once

#include <string>
#include <vector>

namespace gpunn::data {

// The classes by their labels, as the published batches.meta.txt, fine_label_names.txt and coarse_label_names.txt have
// them.
std::vector<std::string> cifar10_classes();
std::vector<std::string> cifar100_classes();
std::vector<std::string> cifar100_superclasses();

}  // namespace gpunn::data
