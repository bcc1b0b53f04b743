#include <gpunn/clock.hpp>
#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>
#include <gpunn/version.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "common/files.hpp"
#include "storage/checkpoint.hpp"
#include "storage/file_image.hpp"
#include "storage/format.hpp"
#include "storage/model_info.hpp"

namespace gpunn::storage {

namespace {

constexpr std::size_t kChunkBytes = std::size_t{4} << 20;

void require_name(const std::string& name, const std::string& what) {
  if (name.empty() || name == "." || name.size() > format::kMaxNameBytes || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos) {
    throw Hdf5Failure("can't store " + what + " '" + name + "': a name has 1 to " +
                      std::to_string(format::kMaxNameBytes) + " bytes, none of them '/', and is not '.'");
  }
}

void write_scalar_attribute(hid_t object, const std::string& name, hid_t type, const void* value) {
  const std::string doing = "write the attribute '" + name + "'";
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose, doing);
  const Handle attribute(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose, doing);
  check_call(H5Awrite(attribute, type, value), doing);
}

void write_text_attribute(hid_t object, const std::string& name, const std::string& value) {
  if (value.size() > format::kMaxAttributeBytes) {
    throw Hdf5Failure("can't store " + std::to_string(value.size()) + " bytes in '" + name +
                      "': " + std::to_string(format::kMaxAttributeBytes) + " are allowed");
  }
  write_scalar_attribute(object, name, string_type(value.size()), value.c_str());
}

Handle make_group(hid_t parent, const std::string& name) {
  const std::string doing = "make the group '" + name + "'";
  const Handle creation(H5Pcreate(H5P_GROUP_CREATE), H5Pclose, doing);
  check_call(H5Pset_link_creation_order(creation, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED), doing);
  return {H5Gcreate2(parent, name.c_str(), H5P_DEFAULT, creation, H5P_DEFAULT), H5Gclose, doing};
}

// Pieces of at most kChunkBytes, long runs of the innermost dimensions.
std::vector<hsize_t> chunk_shape(std::vector<hsize_t> shape, std::size_t element_bytes) {
  for (std::size_t dim = 0; dim < shape.size();) {
    const hsize_t elements = std::accumulate(shape.begin(), shape.end(), hsize_t{1}, std::multiplies<>());
    if (elements * element_bytes <= kChunkBytes) break;
    if (shape[dim] == 1) {
      ++dim;
    } else {
      shape[dim] = (shape[dim] + 1) / 2;
    }
  }
  return shape;
}

void write_dataset(hid_t parent, const std::string& name, hid_t type, const std::vector<hsize_t>& shape,
                   const void* values, bool scalar) {
  const std::string doing = "write the dataset '" + name + "'";
  const bool empty = std::find(shape.begin(), shape.end(), hsize_t{0}) != shape.end();
  const Handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose, doing);
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, doing);
  if (!empty) {
    const std::vector<hsize_t> chunk = chunk_shape(shape, H5Tget_size(type));
    check_call(H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data()), doing);
    check_call(H5Pset_fletcher32(creation), doing);
  }
  const Handle dataset(H5Dcreate2(parent, name.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT), H5Dclose,
                       doing);
  if (!empty) check_call(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), doing);
  if (scalar) {
    const int64_t rank = 0;
    write_scalar_attribute(dataset, format::kRank, H5T_STD_I64LE, &rank);
  }
}

void write_tensor(hid_t parent, const StoredTensor& tensor) {
  const std::string what = "the tensor '" + tensor.name + "' " + to_string(tensor.type);
  if (tensor.type.shape.size() > format::kMaxRank)
    throw Hdf5Failure("can't store " + what + ": more than 8 dimensions");
  std::vector<hsize_t> shape;
  uint64_t bytes = size_of(tensor.type.dtype);
  for (const int64_t dim : tensor.type.shape) {
    if (dim < 0 || (dim > 0 && bytes > std::numeric_limits<uint64_t>::max() / static_cast<uint64_t>(dim))) {
      throw Hdf5Failure("can't store " + what + ": its shape is impossible");
    }
    bytes *= static_cast<uint64_t>(dim);
    shape.push_back(static_cast<hsize_t>(dim));
  }
  if (bytes != tensor.values.size()) {
    throw Hdf5Failure("can't store " + what + ": its shape needs " + std::to_string(bytes) + " bytes and it has " +
                      std::to_string(tensor.values.size()));
  }
  const bool scalar = shape.empty();
  if (scalar) shape.push_back(1);
  write_dataset(parent, tensor.name, file_type(tensor.type.dtype), shape, tensor.values.data(), scalar);
}

void write_tensors(hid_t parent, const std::string& group_name, const std::vector<StoredTensor>& tensors) {
  const Handle group = make_group(parent, group_name);
  std::set<std::string> names;
  for (const StoredTensor& tensor : tensors) {
    require_name(tensor.name, "a tensor named");
    if (!names.insert(tensor.name).second) {
      throw Hdf5Failure("can't store two tensors named '" + tensor.name + "' in /" + group_name);
    }
    write_tensor(group, tensor);
  }
}

void write_text(hid_t root, const char* name, const std::string& text) {
  if (text.size() > format::kMaxTextBytes) {
    throw Hdf5Failure(std::string("can't store more than 64 MiB as '") + name + "'");
  }
  write_dataset(root, name, string_type(text.size()), {1}, text.c_str(), false);
}

void write_checkpoint(hid_t file, const Checkpoint& checkpoint) {
  const Handle root(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose, "open the root group");
  write_text_attribute(root, format::kFormat, format::kName);
  const int64_t version_here = checkpoint.model ? format::kVersion : format::kVersionWithoutModel;
  write_scalar_attribute(root, format::kFormatVersion, H5T_STD_I64LE, &version_here);
  write_text_attribute(root, format::kProgramVersion,
                       checkpoint.gpunn_version.empty() ? version() : checkpoint.gpunn_version);
  write_text_attribute(root, format::kCreated, checkpoint.created.empty() ? utc_time() : checkpoint.created);
  write_text_attribute(root, format::kBackend, checkpoint.backend);
  write_text(root, format::kExperiment, checkpoint.experiment);
  if (!checkpoint.given.empty()) write_text(root, format::kGiven, checkpoint.given);
  if (checkpoint.model) write_text(root, format::kModel, model_info_text(*checkpoint.model));

  const Handle counters = make_group(root, format::kCounters);
  for (const auto& [name, value] : checkpoint.counters) {
    require_name(name, "a counter named");
    write_scalar_attribute(counters, name, H5T_STD_I64LE, &value);
  }
  const Handle metrics = make_group(root, format::kMetrics);
  for (const auto& [name, value] : checkpoint.metrics) {
    require_name(name, "a metric named");
    write_scalar_attribute(metrics, name, H5T_IEEE_F64LE, &value);
  }

  write_tensors(root, format::kParameters, checkpoint.parameters);
  write_tensors(root, format::kBuffers, checkpoint.buffers);
  const Handle optimizer = make_group(root, format::kOptimizer);
  for (const auto& [name, tensors] : checkpoint.optimizer) {
    require_name(name, "an optimizer state named");
    write_tensors(optimizer, name, tensors);
  }
  write_tensors(root, format::kState, checkpoint.state);
}

std::size_t total_bytes(const Checkpoint& checkpoint) {
  std::size_t total = checkpoint.experiment.size() + checkpoint.given.size();
  const auto add = [&](const std::vector<StoredTensor>& tensors) {
    for (const StoredTensor& tensor : tensors) total += tensor.values.size();
  };
  add(checkpoint.parameters);
  add(checkpoint.buffers);
  for (const auto& [name, tensors] : checkpoint.optimizer) add(tensors);
  add(checkpoint.state);
  return total;
}

}  // namespace

void save_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint) {
  save_checkpoint(std::vector{file}, checkpoint);
}

void save_checkpoint(const std::vector<std::filesystem::path>& files, const Checkpoint& checkpoint) {
  if (files.empty()) return;
  const std::filesystem::path& file = files.front();
  try {
    const LongWork work("writing " + file.filename().string());
    const Hdf5Session session;
    FileImage image(total_bytes(checkpoint));
    write_checkpoint(image.file(), checkpoint);
    const std::string_view bytes = image.finish();
    write_atomically(file, bytes);
    for (auto other = files.begin() + 1; other != files.end(); ++other) {
      if (!link_atomically(file, *other)) write_atomically(*other, bytes);
    }
  } catch (const Hdf5Failure& failure) {
    throw Error("can't save the checkpoint " + file.string() + ": " + failure.what());
  } catch (const std::bad_alloc&) {
    throw Error("can't save the checkpoint " + file.string() + ": not enough memory");
  }
}

}  // namespace gpunn::storage
