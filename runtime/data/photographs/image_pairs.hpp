#pragma once

#include <gpunn/data.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "config/given_keys.hpp"
#include "config/kinds.hpp"
#include "data/folders/damaged_files.hpp"
#include "data/images/image.hpp"
#include "data/images/planes.hpp"

namespace gpunn::data {

// What a model gets, and what it is to make of it.
struct ImagePair {
  std::string name;
  Planes input, target;
};

// An image as the settings want its colours. A grey one is luma as it is.
Planes planes_of(const Image& image, ColourPlanes colours);

// The target is the top left of the image, of sides that are multiples of the scale; what the model gets is made of it
// by MATLAB's bicubic.
ImagePair degraded_pair(std::string name, const Planes& image, const PhotographSet& settings);

// Of an image and its small form, whose sides are those of the image divided by the scale, rounded down. Throws Error
// where they are not.
ImagePair given_pair(std::string name, const Planes& image, const Planes& small, const PhotographSet& settings);

// A folder of photographs. With `small` the small forms have the same paths beneath it; else they are made.
struct PhotographFolder {
  std::filesystem::path folder, small = {};
  std::vector<std::filesystem::path> apart = {};  // folders beneath it that are of other parts
};

// Those of a folder, sorted. Throws Error(missing) if there are none.
std::vector<std::filesystem::path> photographs_of(const PhotographFolder& folder);

// The images of a folder as pairs, with their names less the ending, and without damaged ones that are left out. In the
// settings' further sizes too, if `all_sizes` is set.
std::vector<ImagePair> read_pairs(const PhotographFolder& folder, const PhotographSet& settings, bool all_sizes,
                                  DamagedFiles& damaged);

// Rows of an evaluation, each an image of its own size.
Split split_of_pairs(const std::vector<ImagePair>& pairs);

// The image in another size, as a file would have it.
Planes in_other_size(const Planes& image, double factor);

// A data set that trains on random patches of some pairs, and is evaluated on others as a whole. Throws Error(usage)
// where no training image holds a patch.
Dataset photograph_dataset(std::vector<ImagePair> train, const std::vector<ImagePair>& test, const DataConfig& config);
// The same with the photographs beneath folders to train on, which are read some at a time where they do not fit into
// memory or data.decode says so.
Dataset photograph_dataset(const std::vector<PhotographFolder>& train, const std::vector<ImagePair>& test,
                           const DataConfig& config, DamagedFiles& damaged);

// The keys that the sets of photographs share, behind those that one has of its own.
config::KindOf<DataConfig> photograph_keys(std::vector<config::KeyOf<PhotographSet>> own);
// Of those that are read from files.
config::KeyOf<PhotographSet> decode_key();
void check_photographs(const DataConfig& config, const config::GivenKeys& given, config::Diagnostics& found);

}  // namespace gpunn::data
