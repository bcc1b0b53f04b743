#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "common/host_memory.hpp"
#include "common/input_file.hpp"
#include "storage/attributes.hpp"
#include "storage/checkpoint.hpp"
#include "storage/format.hpp"
#include "storage/hdf5.hpp"
#include "storage/loaded_image.hpp"
#include "storage/model_info.hpp"

namespace gpunn::storage {

namespace {

namespace fs = std::filesystem;

constexpr const char* kAdvice = "; a run folder's last.h5 and best.h5 are checkpoints";

// Follows hard links only: a soft or external link could lead to another file of the user's.
void require_object(hid_t parent, const std::string& name, H5O_type_t kind) {
  const char* word = kind == H5O_TYPE_GROUP ? "group" : "dataset";
  if (H5Lexists(parent, name.c_str(), H5P_DEFAULT) <= 0) {
    throw Hdf5Failure(std::string("the ") + word + " '" + name + "' is missing");
  }
  H5L_info_t link{};
  check_call(H5Lget_info(parent, name.c_str(), &link, H5P_DEFAULT), "look at '" + name + "'");
  if (link.type != H5L_TYPE_HARD) {
    throw Hdf5Failure("'" + name + "' is a link to somewhere else, which a checkpoint never has");
  }
  H5O_info_t object{};
  check_call(H5Oget_info_by_name2(parent, name.c_str(), &object, H5O_INFO_BASIC, H5P_DEFAULT),
             "look at '" + name + "'");
  if (object.type != kind) throw Hdf5Failure(std::string("'") + name + "' is not a " + word);
}

Handle open_group(hid_t parent, const std::string& name) {
  require_object(parent, name, H5O_TYPE_GROUP);
  return {H5Gopen2(parent, name.c_str(), H5P_DEFAULT), H5Gclose, "open the group '" + name + "'"};
}

// Names in a group, in the order in which they were written.
std::vector<std::string> names_in(hid_t group, const std::string& group_name) {
  const std::string doing = "list the group '" + group_name + "' in the order of writing";
  H5G_info_t info{};
  check_call(H5Gget_info(group, &info), doing);
  if (info.nlinks > format::kMaxEntries) {
    throw Hdf5Failure("the group '" + group_name + "' claims " + std::to_string(info.nlinks) + " entries");
  }
  std::vector<std::string> names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const ssize_t length = H5Lget_name_by_idx(group, ".", H5_INDEX_CRT_ORDER, H5_ITER_INC, i, nullptr, 0, H5P_DEFAULT);
    if (length < 0) fail_in_hdf5(doing);
    if (length == 0 || static_cast<std::size_t>(length) > format::kMaxNameBytes) {
      throw Hdf5Failure("a name in the group '" + group_name + "' is empty or longer than " +
                        std::to_string(format::kMaxNameBytes) + " bytes");
    }
    std::string name(static_cast<std::size_t>(length) + 1, '\0');
    if (H5Lget_name_by_idx(group, ".", H5_INDEX_CRT_ORDER, H5_ITER_INC, i, name.data(), name.size(), H5P_DEFAULT) < 0) {
      fail_in_hdf5(doing);
    }
    name.pop_back();
    names.push_back(std::move(name));
  }
  return names;
}

std::optional<DType> dtype_of(hid_t type) {
  for (const DType candidate : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32, DType::i64, DType::u8}) {
    if (H5Tequal(type, file_type(candidate)) > 0) return candidate;
  }
  return std::nullopt;
}

// Reads one file. Nothing in a checkpoint is compressed, so all that is read from it together is no larger than it.
class Reader {
 public:
  Reader(hid_t root, uint64_t file_bytes) : root_(root), left_(file_bytes), file_bytes_(file_bytes) {}

  Checkpoint read() {
    Checkpoint result;
    const int64_t version = require_format(result);
    result.created = text_attribute(root_, format::kCreated);
    result.backend = text_attribute(root_, format::kBackend);
    result.experiment = read_text(format::kExperiment);
    if (H5Lexists(root_, format::kGiven, H5P_DEFAULT) > 0) result.given = read_text(format::kGiven);
    if (version > format::kVersionWithoutModel) result.model = read_model();
    result.counters = integer_attributes(open_group(root_, format::kCounters));
    result.metrics = double_attributes(open_group(root_, format::kMetrics));
    result.parameters = read_tensors(root_, format::kParameters);
    if (H5Lexists(root_, format::kBuffers, H5P_DEFAULT) > 0) {
      result.buffers = read_tensors(root_, format::kBuffers);
    }
    const Handle optimizer = open_group(root_, format::kOptimizer);
    for (const std::string& name : names_in(optimizer, format::kOptimizer)) {
      result.optimizer[name] = read_tensors(optimizer, name);
    }
    result.state = read_tensors(root_, format::kState);
    return result;
  }

 private:
  int64_t require_format(Checkpoint& result) {
    if (H5Aexists(root_, format::kFormat) <= 0 || text_attribute(root_, format::kFormat) != format::kName) {
      throw Hdf5Failure(std::string("is an HDF5 file but not a gpunn checkpoint: its root has no attribute 'format' "
                                    "saying 'gpunn-checkpoint'") +
                        kAdvice);
    }
    const auto version = integer_attribute(root_, format::kFormatVersion);
    result.gpunn_version = text_attribute(root_, format::kProgramVersion);
    if (version > format::kVersion) {
      throw Hdf5Failure("was made by a newer gpunn (" + result.gpunn_version + "): its format is version " +
                        std::to_string(version) + " and this program reads up to version " +
                        std::to_string(format::kVersion) + "; use that gpunn or a later one");
    }
    if (version < 1) throw Hdf5Failure("has the impossible format version " + std::to_string(version));
    return version;
  }

  // Opens a dataset whose whole content is inside this file, as it is.
  Handle open_dataset(hid_t parent, const std::string& name) const {
    require_object(parent, name, H5O_TYPE_DATASET);
    const std::string doing = "open the dataset '" + name + "'";
    Handle dataset(H5Dopen2(parent, name.c_str(), H5P_DEFAULT), H5Dclose, doing);
    const Handle creation(H5Dget_create_plist(dataset), H5Pclose, doing);
    if (H5Pget_layout(creation) == H5D_VIRTUAL || H5Pget_external_count(creation) > 0) {
      throw Hdf5Failure("the dataset '" + name + "' keeps its values in another file, which a checkpoint never does");
    }
    const int filters = H5Pget_nfilters(creation);
    for (int i = 0; i < filters; ++i) {
      unsigned flags = 0;
      unsigned config = 0;
      std::size_t values = 0;
      const H5Z_filter_t filter =
          H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, &config);
      if (filter != H5Z_FILTER_FLETCHER32) {
        throw Hdf5Failure("the dataset '" + name + "' has HDF5 filter " + std::to_string(filter) +
                          "; only the checksum fletcher32 is known here");
      }
    }
    return dataset;
  }

  // Throws where a dataset of this many bytes can't be in this file, before anything is allocated for it.
  void require_space(hid_t dataset, const std::string& name, const std::vector<hsize_t>& shape, std::size_t element) {
    const Handle creation(H5Dget_create_plist(dataset), H5Pclose, "look at the dataset '" + name + "'");
    uint64_t bytes = element;
    for (const hsize_t dim : shape) bytes = product(bytes, dim);
    uint64_t chunk_bytes = 0;
    if (H5Pget_layout(creation) == H5D_CHUNKED) {
      std::vector<hsize_t> chunk(shape.size());
      check_call(H5Pget_chunk(creation, static_cast<int>(chunk.size()), chunk.data()),
                 "look at the dataset '" + name + "'");
      chunk_bytes = element;
      for (const hsize_t dim : chunk) chunk_bytes = product(chunk_bytes, dim);
    }
    const uint64_t stored = H5Dget_storage_size(dataset);
    if (bytes > left_ || bytes > stored || (bytes > 0 && chunk_bytes > file_bytes_)) {
      throw Hdf5Failure("the dataset '" + name + "' claims " + std::to_string(bytes) +
                        " bytes, of which the file has " + std::to_string(std::min(left_, stored)) + ": it is damaged");
    }
    left_ -= bytes;
  }

  static uint64_t product(uint64_t a, uint64_t b) {
    if (a != 0 && b > std::numeric_limits<uint64_t>::max() / a) return std::numeric_limits<uint64_t>::max();
    return a * b;
  }

  static std::vector<hsize_t> shape_of(hid_t dataset, const std::string& name) {
    const std::string doing = "read the shape of '" + name + "'";
    const Handle space(H5Dget_space(dataset), H5Sclose, doing);
    const int rank = H5Sget_simple_extent_ndims(space);
    if (H5Sget_simple_extent_type(space) != H5S_SIMPLE || rank < 1 ||
        static_cast<std::size_t>(rank) > format::kMaxRank) {
      throw Hdf5Failure("the dataset '" + name + "' has rank " + std::to_string(rank) + "; 1 to 8 are known here");
    }
    std::vector<hsize_t> shape(static_cast<std::size_t>(rank));
    if (H5Sget_simple_extent_dims(space, shape.data(), nullptr) < 0) fail_in_hdf5(doing);
    // A dimension of 0 must not hide an overflow: the product is formed elsewhere, in other orders.
    uint64_t elements = 1;
    for (const hsize_t dim : shape) elements = product(elements, std::max<hsize_t>(dim, 1));
    if (elements > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      throw Hdf5Failure("the dataset '" + name + "' has an impossible shape");
    }
    return shape;
  }

  ModelInfo read_model() {
    try {
      return parse_model_info(read_text(format::kModel));
    } catch (const ModelInfoFailure& failure) {
      throw Hdf5Failure(std::string("the dataset 'model' does not describe a model: ") + failure.what());
    }
  }

  std::string read_text(const std::string& name) {
    const Handle dataset = open_dataset(root_, name);
    const Handle type(H5Dget_type(dataset), H5Tclose, "read the type of '" + name + "'");
    const std::size_t bytes = H5Tget_size(type);
    if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 || bytes > format::kMaxTextBytes ||
        shape_of(dataset, name) != std::vector<hsize_t>{1}) {
      throw Hdf5Failure("the dataset '" + name + "' is not one string of a fixed length of at most 64 MiB");
    }
    require_space(dataset, name, {1}, bytes);
    std::string text(bytes, '\0');
    check_call(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), "read the dataset '" + name + "'");
    text.resize(std::min(text.find('\0'), bytes));
    return text;
  }

  StoredTensor read_tensor(hid_t parent, const std::string& name) {
    const Handle dataset = open_dataset(parent, name);
    const Handle type(H5Dget_type(dataset), H5Tclose, "read the type of '" + name + "'");
    const std::optional<DType> dtype = dtype_of(type);
    if (!dtype) {
      throw Hdf5Failure("the dataset '" + name + "' has a type that is none of f32, bf16, f16, f64, i32, i64 and u8");
    }
    const std::vector<hsize_t> shape = shape_of(dataset, name);
    require_space(dataset, name, shape, size_of(*dtype));

    StoredTensor tensor{name, {*dtype, {}}, {}};
    for (const hsize_t dim : shape) tensor.type.shape.push_back(static_cast<int64_t>(dim));
    if (shape == std::vector<hsize_t>{1} && H5Aexists(dataset, format::kRank) > 0) {
      if (integer_attribute(dataset, format::kRank) != 0) {
        throw Hdf5Failure("the attribute 'rank' of the dataset '" + name + "' is not 0");
      }
      tensor.type.shape.clear();
    }
    tensor.values.resize(tensor.type.bytes());
    if (!tensor.values.empty()) {
      check_call(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.values.data()),
                 "read the dataset '" + name + "'; it is damaged");
    }
    return tensor;
  }

  std::vector<StoredTensor> read_tensors(hid_t parent, const std::string& group_name) {
    const Handle group = open_group(parent, group_name);
    std::vector<StoredTensor> tensors;
    for (const std::string& name : names_in(group, group_name)) tensors.push_back(read_tensor(group, name));
    return tensors;
  }

  hid_t root_;
  uint64_t left_;
  uint64_t file_bytes_;
};

constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";

// Where an HDF5 file's signature may be: at its beginning, or behind a block of the user's own.
bool is_hdf5(std::string_view bytes) {
  for (std::size_t place = 0; place + kSignature.size() <= bytes.size(); place = place == 0 ? 512 : 2 * place) {
    if (bytes.substr(place).starts_with(kSignature)) return true;
  }
  return false;
}

// Since version 2 of it, the superblock and all that it leads to have checksums. libhdf5 takes a file for one of the
// older versions by a single byte, and crashes on what it then reads.
void require_checksums(std::string_view bytes) {
  const std::string_view head = bytes.substr(0, kSignature.size() + 1);
  if (head.starts_with(kSignature) && head.size() > kSignature.size() && head.back() >= 2) return;
  throw Hdf5Failure(
      "is not a gpunn checkpoint, or its beginning is damaged: gpunn writes a superblock of version 2 or "
      "later, at the beginning" +
      std::string(kAdvice));
}

Checkpoint load(const fs::path& file) {
  InputFile input(file);
  const std::size_t size = input.bytes();
  require_host_memory(size, file.string());
  std::string bytes(size, '\0');
  bytes.resize(input.read(bytes));
  const Hdf5Session session;
  if (!is_hdf5(bytes)) {
    const std::string_view about = explanation(file.extension().string());
    if (!about.empty()) throw Hdf5Failure("is no checkpoint. " + std::string(about));
    throw Hdf5Failure(std::string("is not an HDF5 file, or its beginning is lost") + kAdvice);
  }
  require_checksums(bytes);
  const LoadedImage image(std::move(bytes));
  const Handle root(H5Gopen2(image.file(), "/", H5P_DEFAULT), H5Gclose, "open its root group");
  return Reader(root, size).read();
}

}  // namespace

Checkpoint load_checkpoint(const fs::path& file) {
  const PathKind kind = kind_of(file);
  if (kind == PathKind::absent) throw Error("there is no checkpoint " + file.string(), ExitCode::missing);
  if (kind != PathKind::file) throw Error(file.string() + " is not a file, so it is no checkpoint", ExitCode::missing);
  try {
    const LongWork work("reading " + file.filename().string());
    return load(file);
  } catch (const Hdf5Failure& failure) {
    throw Error("the checkpoint " + file.string() + ": " + failure.what());
  } catch (const std::bad_alloc&) {
    throw Error("the checkpoint " + file.string() + " needs more memory than there is");
  }
}

}  // namespace gpunn::storage
