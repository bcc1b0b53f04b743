#include "data/rows/own_data.hpp"

#include <gpunn/error.hpp>

#include <sstream>
#include <utility>

#include "common/host_memory.hpp"
#include "common/text.hpp"
#include "data/rows/partition.hpp"
#include "data/synthetic/philox_source.hpp"

namespace gpunn::data {

namespace {

std::string fraction_text(double fraction) {
  std::ostringstream text;
  text << fraction;
  return text.str();
}

// Takes the share that `key` asks for out of the training samples.
Split drawn_share(Dataset& set, const DataConfig& config, const std::string& key, double fraction, uint64_t stream) {
  const int64_t rows = set.train.rows();
  Split share = take_share(set.train, {.fraction = fraction,
                                       .stratify = config.stratify,
                                       .classes = set.fields.target().count(),
                                       .seed = config.seed,
                                       .stream = stream});
  if (fraction > 0 && rows > 0 && share.rows() == 0) {
    throw Error(key + " is " + fraction_text(fraction) + ", which takes none of the " + std::to_string(rows) +
                    " samples of " + set.source + "; give a larger one, or more samples",
                ExitCode::usage);
  }
  return share;
}

}  // namespace

void take_test_share(Dataset& set, const DataConfig& config) {
  if (config.test_fraction > 0 && set.test.rows() > 0) {
    throw Error("data.test_fraction is " + fraction_text(config.test_fraction) + ", but " + set.source +
                    " has a test part of its own (" + std::to_string(set.test.rows()) +
                    " samples); leave data.test_fraction out",
                ExitCode::usage);
  }
  if (set.test.rows() > 0) return;
  set.test = drawn_share(set, config, "data.test_fraction", config.test_fraction, kTestShareStream);
}

void take_validation_share(Dataset& set, const DataConfig& config) {
  if (set.validation.rows() > 0) {
    if (config.validation_fraction == 0) return;
    if (set.test.rows() > 0) {
      throw Error("data.validation_fraction is " + fraction_text(config.validation_fraction) + ", but " + set.source +
                      " has a validation part of its own (" + std::to_string(set.validation.rows()) +
                      " samples); leave data.validation_fraction out",
                  ExitCode::usage);
    }
    set.test = std::move(set.validation);  // the only held-out part stays unseen; the training is watched by the share
  }
  set.validation =
      drawn_share(set, config, "data.validation_fraction", config.validation_fraction, kValidationShareStream);
}

void require_memory(uint64_t bytes, const std::string& what, const std::string& advice) {
  const uint64_t free = free_host_memory();
  if (free == 0 || bytes <= free) return;
  throw Error(what + " are " + human_bytes(bytes) + ", and " + human_bytes(free) + " of memory are free; " + advice);
}

}  // namespace gpunn::data
