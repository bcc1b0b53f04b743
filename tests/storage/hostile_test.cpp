#include <gpunn/error.hpp>

#include <fstream>
#include <functional>
#include <vector>

#include "catch.hpp"
#include "checkpoints.hpp"
#include "storage/hdf5.hpp"

using namespace storage_test;
using gpunn::Error;
using gpunn::ExitCode;
using gpunn::storage::Handle;
using gpunn::storage::load_checkpoint;
using gpunn::storage::save_checkpoint;

namespace {

constexpr hid_t kDefault = H5P_DEFAULT;

// Changes a good checkpoint.
void edit(const fs::path& file, const std::function<void(hid_t)>& change) {
  const Handle opened(H5Fopen(file.c_str(), H5F_ACC_RDWR, kDefault), H5Fclose, "open");
  change(opened);
}

void add_attribute(hid_t file, const std::string& group, const std::string& name, hid_t type, const void* value,
                   hsize_t count = 0) {
  const Handle object(H5Gopen2(file, group.c_str(), kDefault), H5Gclose, "open");
  H5Adelete(object, name.c_str());
  const Handle space(count == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, nullptr), H5Sclose, "space");
  const Handle attribute(H5Acreate2(object, name.c_str(), type, space, kDefault, kDefault), H5Aclose, "create");
  REQUIRE(H5Awrite(attribute, type, value) >= 0);
}

// A dataset that is never written to, so that the file has none of the bytes that it claims.
void add_dataset(hid_t file, const std::string& path, hid_t type, const std::vector<hsize_t>& shape,
                 const std::function<void(hid_t)>& setup = {}) {
  if (H5Lexists(file, path.c_str(), kDefault) > 0) H5Ldelete(file, path.c_str(), kDefault);
  const Handle space(
      shape.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
      H5Sclose, "space");
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "properties");
  if (setup) setup(creation);
  const Handle dataset(H5Dcreate2(file, path.c_str(), type, space, kDefault, creation, kDefault), H5Dclose, "create");
}

}  // namespace

TEST_CASE("a checkpoint from before there were buffers has none") {
  const Folder folder;
  const fs::path file = folder / "last.h5";
  save_checkpoint(file, small_checkpoint());
  edit(file, [](hid_t opened) { REQUIRE(H5Ldelete(opened, "/buffers", kDefault) >= 0); });
  const Checkpoint loaded = load_checkpoint(file);
  CHECK(loaded.buffers.empty());
  CHECK(loaded.parameters.size() == small_checkpoint().parameters.size());
}

TEST_CASE("no file, a folder and a file of something else") {
  const Folder folder;
  const fs::path file = folder / "last.h5";
  SECTION("no file") {
    CHECK_THROWS_WITH(load_checkpoint(file), Contains("there is no checkpoint"));
    try {
      load_checkpoint(file);
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::missing);
    }
  }
  SECTION("a folder") {
    fs::create_directory(file);
    CHECK_THROWS_WITH(load_checkpoint(file), Contains("is not a file"));
  }
  SECTION("an empty file") {
    write_bytes(file, "");
    CHECK_THROWS_WITH(load_checkpoint(file), Contains("is not an HDF5 file"));
  }
  SECTION("text") {
    write_bytes(file, "name: lenet\n");
    CHECK_THROWS_WITH(load_checkpoint(file), Contains("is not an HDF5 file") && Contains("best.h5"));
  }
  SECTION("an HDF5 file of another program") {
    { const Handle other(H5Fcreate(file.c_str(), H5F_ACC_TRUNC, kDefault, kDefault), H5Fclose, "create"); }
    CHECK_THROWS_WITH(load_checkpoint(file), Contains("not a gpunn checkpoint"));
  }
}

TEST_CASE("a checkpoint cut short anywhere is refused") {
  const Folder folder;
  const fs::path file = folder / "last.h5";
  save_checkpoint(file, small_checkpoint());
  const std::string whole = bytes_of(file);
  CHECK_THROWS_WITH((fs::resize_file(file, whole.size() / 2), load_checkpoint(file)), Contains("truncated"));
  for (std::size_t length = 0; length < whole.size(); length += 61) {
    write_bytes(file, whole.substr(0, length));
    INFO("length " << length);
    CHECK_THROWS_AS(load_checkpoint(file), Error);
  }
}

TEST_CASE("a flipped bit is found, wherever it matters") {
  const Folder folder;
  const fs::path file = folder / "last.h5";
  const Checkpoint saved = small_checkpoint();
  save_checkpoint(file, saved);
  const std::string whole = bytes_of(file);
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  const auto write_byte = [&](std::size_t place, char value) {
    stream.seekp(static_cast<std::streamoff>(place)).put(value).flush();
    REQUIRE(stream.good());
  };
  std::size_t found = 0;
  for (std::size_t place = 0; place < whole.size(); ++place) {
    write_byte(place, static_cast<char>(whole[place] ^ (1 << (place % 8))));
    bool intact = false;
    try {
      intact = same(load_checkpoint(file), saved);
    } catch (const Error&) {
      intact = true;
      ++found;
    }
    write_byte(place, whole[place]);
    INFO("byte " << place << " of " << whole.size());
    REQUIRE(intact);
  }
  CHECK(found > 600 * 3);  // at least each byte of the three large tensors
}

TEST_CASE("a checkpoint of a newer format says so") {
  const Folder folder;
  const fs::path file = folder / "last.h5";
  Checkpoint saved = small_checkpoint();
  saved.gpunn_version = "7.8.9";
  save_checkpoint(file, saved);
  edit(file, [](hid_t opened) {
    const int64_t version = 3;
    add_attribute(opened, "/", "format_version", H5T_STD_I64LE, &version);
  });
  CHECK_THROWS_WITH(load_checkpoint(file), Contains("made by a newer gpunn (7.8.9)") && Contains("version 3"));
}

TEST_CASE("a checkpoint that lies is refused before anything is allocated") {
  const Folder folder;
  const fs::path file = folder / "last.h5";
  save_checkpoint(file, small_checkpoint());
  const int64_t number = 1;
  std::string expected;
  std::function<void(hid_t)> change;

  SECTION("a dataset of 4 TiB in a small file") {
    change = [](hid_t opened) { add_dataset(opened, "/parameters/huge", H5T_IEEE_F32LE, {1ULL << 20U, 1ULL << 20U}); };
    expected = "claims 4398046511104 bytes";
  }
  SECTION("a chunked dataset with no chunk in the file") {
    change = [](hid_t opened) {
      add_dataset(opened, "/parameters/huge", H5T_IEEE_F32LE, {1ULL << 40U}, [](hid_t creation) {
        const hsize_t chunk = 1024;
        H5Pset_chunk(creation, 1, &chunk);
      });
    };
    expected = "it is damaged";
  }
  SECTION("dimensions whose product overflows") {
    change = [](hid_t opened) {
      add_dataset(opened, "/parameters/huge", H5T_IEEE_F32LE, {1ULL << 62U, 0, 1ULL << 62U});
    };
    expected = "impossible shape";
  }
  SECTION("one dataset under two names") {
    change = [](hid_t opened) {
      for (int i = 0; i < 100; ++i) {
        H5Lcreate_hard(opened, "/parameters/conv1.weight", opened, ("/state/copy" + std::to_string(i)).c_str(),
                       kDefault, kDefault);
      }
    };
    expected = "it is damaged";
  }
  SECTION("compressed values") {
    change = [](hid_t opened) {
      add_dataset(opened, "/state/small", H5T_IEEE_F32LE, {100}, [](hid_t creation) {
        const hsize_t chunk = 100;
        H5Pset_chunk(creation, 1, &chunk);
        H5Pset_shuffle(creation);
      });
    };
    expected = "only the checksum fletcher32 is known";
  }
  SECTION("a type that no tensor has") {
    change = [](hid_t opened) { add_dataset(opened, "/state/odd", H5T_STD_I16BE, {1}); };
    expected = "a type that is none of f32";
  }
  SECTION("nine dimensions") {
    change = [](hid_t opened) { add_dataset(opened, "/state/odd", H5T_IEEE_F32LE, std::vector<hsize_t>(9, 1)); };
    expected = "has rank 9";
  }
  SECTION("a group where a dataset should be") {
    change = [](hid_t opened) {
      const Handle group(H5Gcreate2(opened, "/state/odd", kDefault, kDefault, kDefault), H5Gclose, "create");
    };
    expected = "'odd' is not a dataset";
  }
  SECTION("a dataset where a group should be") {
    change = [](hid_t opened) {
      H5Ldelete(opened, "/metrics", kDefault);
      add_dataset(opened, "/metrics", H5T_IEEE_F32LE, {1});
    };
    expected = "'metrics' is not a group";
  }
  SECTION("a missing group") {
    change = [](hid_t opened) { H5Ldelete(opened, "/optimizer", kDefault); };
    expected = "the group 'optimizer' is missing";
  }
  SECTION("no experiment") {
    change = [](hid_t opened) { H5Ldelete(opened, "/experiment", kDefault); };
    expected = "the dataset 'experiment' is missing";
  }
  SECTION("an experiment of 1 GiB that is not there") {
    change = [](hid_t opened) {
      const Handle type = gpunn::storage::string_type(std::size_t{1} << 30U);
      add_dataset(opened, "/experiment", type, {1});
    };
    expected = "at most 64 MiB";
  }
  SECTION("a group without the order of writing") {
    change = [](hid_t opened) {
      H5Ldelete(opened, "/state", kDefault);
      const Handle group(H5Gcreate2(opened, "/state", kDefault, kDefault, kDefault), H5Gclose, "create");
      add_dataset(opened, "/state/x", H5T_IEEE_F32LE, {0});
    };
    expected = "in the order of writing";
  }
  SECTION("a soft link") {
    change = [](hid_t opened) { H5Lcreate_soft("/parameters/conv1.bias", opened, "/state/soft", kDefault, kDefault); };
    expected = "a link to somewhere else";
  }
  SECTION("a link to another file") {
    const fs::path other = folder / "other.h5";
    save_checkpoint(other, small_checkpoint());
    change = [other](hid_t opened) {
      H5Lcreate_external(other.c_str(), "/parameters/conv1.bias", opened, "/state/external", kDefault, kDefault);
    };
    expected = "a link to somewhere else";
  }
  SECTION("values kept in another file") {
    change = [](hid_t opened) {
      add_dataset(opened, "/state/external", H5T_STD_U8LE, {100},
                  [](hid_t creation) { H5Pset_external(creation, "/etc/hostname", 0, 100); });
    };
    expected = "keeps its values in another file";
  }
  SECTION("a format of a million bytes") {
    change = [](hid_t opened) {
      // Text of a variable length lies outside the attribute, where no limit of HDF5's holds.
      const Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "type");
      H5Tset_size(type, H5T_VARIABLE);
      const std::string text(1'000'000, 'x');
      const char* pointer = text.c_str();
      add_attribute(opened, "/", "format", type, &pointer);
    };
    expected = "the attribute 'format' is not one string";
  }
  SECTION("a format version that is a float") {
    change = [](hid_t opened) {
      const double version = 1;
      add_attribute(opened, "/", "format_version", H5T_IEEE_F64LE, &version);
    };
    expected = "'format_version' is not one little-endian 64-bit integer";
  }
  SECTION("a counter that is an array") {
    change = [](hid_t opened) {
      const std::vector<int64_t> many(1000, 1);
      add_attribute(opened, "/counters", "step", H5T_STD_I64LE, many.data(), many.size());
    };
    expected = "'step' is not one little-endian 64-bit integer";
  }
  SECTION("a metric that is an integer") {
    change = [&](hid_t opened) { add_attribute(opened, "/metrics", "best", H5T_STD_I64LE, &number); };
    expected = "'best' is not one little-endian 64-bit floating-point number";
  }
  SECTION("a scalar that claims another rank") {
    change = [&](hid_t opened) {
      add_dataset(opened, "/state/odd", H5T_IEEE_F32LE, {1},
                  [](hid_t creation) { H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY); });
      const Handle dataset(H5Dopen2(opened, "/state/odd", kDefault), H5Dclose, "open");
      const Handle space(H5Screate(H5S_SCALAR), H5Sclose, "space");
      const Handle rank(H5Acreate2(dataset, "rank", H5T_STD_I64LE, space, kDefault, kDefault), H5Aclose, "create");
      H5Awrite(rank, H5T_STD_I64LE, &number);
    };
    expected = "'rank' of the dataset 'odd' is not 0";
  }
  edit(file, change);
  CHECK_THROWS_WITH(load_checkpoint(file), Contains(expected) && Contains("last.h5"));
}

TEST_CASE("a checkpoint with a superblock of a version without checksums is refused") {
  const gpunn::testing::TemporaryFolder folder;
  save_checkpoint(folder / "last.h5", small_checkpoint());
  const std::string sound = bytes_of(folder / "last.h5");
  for (const char version : {'\0', '\1'}) {
    std::string damaged = sound;
    damaged[8] = version;
    write_bytes(folder / "last.h5", damaged);
    CHECK_THROWS_WITH(load_checkpoint(folder / "last.h5"),
                      Contains("last.h5") && Contains("superblock of version 2 or later"));
  }
}
