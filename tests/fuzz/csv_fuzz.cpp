// Tables: the reader of lines alone, and the data set.
#include <gpunn/data.hpp>

#include "data/tables/csv.hpp"
#include "fuzz.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes) {
  const gpunn::fuzz::MemoryFile file(gpunn::fuzz::text_of(data, bytes));
  gpunn::fuzz::expect_at_most_an_error([&] {
    gpunn::data::CsvReader reader(file.path(), ',');
    for (std::vector<std::string> fields; reader.next(fields);) {
    }
  });
  gpunn::DataConfig config;
  config.dataset = "csv";
  config.path = file.path();
  config.kind = gpunn::CsvSet();
  config.test_fraction = 0.25;
  gpunn::fuzz::expect_at_most_an_error([&] { gpunn::load_dataset(config); });
  return 0;
}
