#include "data/images/image.hpp"

#include <gpunn/data.hpp>

#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "files.hpp"
#include "image_files.hpp"

using gpunn::read_image;
using test::make_jpeg;
using test::make_png;
using test::write_file;
using Bytes = std::vector<uint8_t>;

namespace {

std::string bytes_of(const Bytes& values) { return {values.begin(), values.end()}; }

// A smooth picture, which JPEG keeps nearly as it is.
std::string gradient(int width, int height, int channels) {
  std::string pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) pixels += static_cast<char>(20 + 3 * x + 2 * y + 30 * c);
    }
  }
  return pixels;
}

int largest_difference(const Bytes& a, const std::string& b) {
  REQUIRE(a.size() == b.size());
  int most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - static_cast<uint8_t>(b[i])));
  return most;
}

struct Reader {
  test::TemporaryFolder folder;
  Bytes operator()(const std::string& contents, int64_t channels, int64_t height, int64_t width,
                   bool invert = false) const {
    write_file(folder / "picture", contents);
    return read_image(folder / "picture", channels, height, width, invert);
  }
};

}  // namespace

TEST_CASE("an image in memory gives what its file does, and no memory is taken for more pixels than allowed") {
  const Reader read;
  const std::string png = make_png(40, 30, test::counting_bytes(1200));
  const std::string jpeg = make_jpeg(40, 30, test::counting_bytes(3600), JCS_RGB, 3);
  const std::string pgm = "P5 40 30 255\n" + test::counting_bytes(1200);
  const auto in_memory = [](const std::string& bytes, int64_t most_pixels) {
    return read_image({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "upload.png", 1, 15, 20, false,
                      {}, most_pixels);
  };
  for (const std::string& bytes : {png, jpeg, pgm}) {
    CHECK(in_memory(bytes, 1200) == read(bytes, 1, 15, 20));
    CHECK_THROWS_WITH(in_memory(bytes, 1199),
                      Contains("upload.png") && Contains("40 by 30") && Contains("1199 in all"));
  }
  CHECK_THROWS_WITH(in_memory("", 1200), Contains("upload.png: not an image"));
}

TEST_CASE("PNGs of every kind are read as 8-bit grey or colour") {
  const Reader read;
  test::PngOptions options;
  SECTION("grey") {
    options.interlace = GENERATE(PNG_INTERLACE_NONE, PNG_INTERLACE_ADAM7);
    const std::string pixels = test::counting_bytes(9 * 7);
    CHECK(read(make_png(9, 7, pixels, options), 1, 7, 9) == Bytes(pixels.begin(), pixels.end()));
  }
  SECTION("one bit a pixel") {
    options.bit_depth = 1;
    CHECK(read(make_png(4, 2, bytes_of({0xA0, 0x50}), options), 1, 2, 4) == Bytes{255, 0, 255, 0, 0, 255, 0, 255});
  }
  SECTION("sixteen bits") {
    options.bit_depth = 16;
    CHECK(read(make_png(3, 1, bytes_of({0, 0, 0x80, 0x80, 0xFF, 0xFF}), options), 1, 1, 3) == Bytes{0, 128, 255});
  }
  SECTION("colour comes channel by channel, and as grey by luminance") {
    options.color_type = PNG_COLOR_TYPE_RGB;
    const std::string png = make_png(2, 1, bytes_of({255, 0, 0, 10, 20, 30}), options);
    CHECK(read(png, 3, 1, 2) == Bytes{255, 10, 0, 20, 0, 30});
    CHECK(read(png, 1, 1, 2) == Bytes{76, 18});
  }
  SECTION("grey as colour") {
    CHECK(read(make_png(2, 1, bytes_of({7, 9}), options), 3, 1, 2) == Bytes{7, 9, 7, 9, 7, 9});
  }
  SECTION("a palette, part of it transparent, on white") {
    options.color_type = PNG_COLOR_TYPE_PALETTE;
    options.palette = {{255, 0, 0}, {0, 100, 0}, {0, 0, 40}};
    const std::string pixels = bytes_of({0, 1, 2, 1});
    CHECK(read(make_png(4, 1, pixels, options), 3, 1, 4) == Bytes{255, 0, 0, 0, 0, 100, 0, 100, 0, 0, 40, 0});
    options.palette_alpha = {255, 0, 128};
    CHECK(read(make_png(4, 1, pixels, options), 3, 1, 4) ==
          Bytes{255, 255, 127, 255, 0, 255, 127, 255, 0, 255, 147, 255});
  }
  SECTION("alpha") {
    options.color_type = PNG_COLOR_TYPE_GRAY_ALPHA;
    CHECK(read(make_png(3, 1, bytes_of({0, 0, 0, 255, 100, 51}), options), 1, 1, 3) == Bytes{255, 0, 224});
    options.color_type = PNG_COLOR_TYPE_RGB_ALPHA;
    CHECK(read(make_png(1, 1, bytes_of({1, 2, 3, 255}), options), 3, 1, 1) == Bytes{1, 2, 3});
  }
}

TEST_CASE("JPEGs, grey or colour, sequential or progressive") {
  const Reader read;
  const bool progressive = GENERATE(false, true);
  const std::string grey = gradient(24, 16, 1);
  CHECK(largest_difference(read(make_jpeg(24, 16, grey, JCS_GRAYSCALE, 1, progressive), 1, 16, 24), grey) <= 3);
  const std::string colour = gradient(24, 16, 3);
  const Bytes planes = read(make_jpeg(24, 16, colour, JCS_RGB, 3, progressive), 3, 16, 24);
  std::string interleaved;
  for (std::size_t i = 0; i < 24 * 16; ++i) {
    for (std::size_t c = 0; c < 3; ++c) interleaved += static_cast<char>(planes[c * 24 * 16 + i]);
  }
  CHECK(largest_difference(Bytes(interleaved.begin(), interleaved.end()), colour) <= 8);
}

TEST_CASE("JPEGs in CMYK are read as Pillow turns them to RGB") {
  const Reader read;
  const bool progressive = GENERATE(false, true);
  const J_COLOR_SPACE stored = GENERATE(JCS_CMYK, JCS_YCCK);
  // Amounts of paper left by the inks, as Adobe stores them, and Pillow's convert("RGB") of the file.
  const std::vector<std::pair<std::string, Bytes>> colours = {{bytes_of({255, 255, 255, 255}), {255, 255, 255}},
                                                              {bytes_of({255, 255, 255, 0}), {0, 0, 0}},
                                                              {bytes_of({0, 255, 255, 255}), {0, 255, 255}},
                                                              {bytes_of({200, 100, 50, 240}), {188, 94, 47}},
                                                              {bytes_of({10, 20, 30, 128}), {5, 10, 15}}};
  for (const auto& [inks, rgb] : colours) {
    std::string pixels;
    for (int i = 0; i < 24 * 16; ++i) pixels += inks;
    const Bytes planes = read(make_jpeg(24, 16, pixels, JCS_CMYK, 4, progressive, stored), 3, 16, 24);
    for (std::size_t i = 0; i < planes.size(); ++i) {
      CAPTURE(i);
      REQUIRE(std::abs(int{planes[i]} - int{rgb[i / (24 * 16)]}) <= (stored == JCS_CMYK ? 1 : 3));
    }
  }
  std::string cut = make_jpeg(24, 16, gradient(24, 16, 4), JCS_CMYK, 4, progressive);
  cut.resize(cut.size() / 2);
  CHECK_THROWS_WITH(read(cut, 3, 16, 24), Contains("damaged JPEG"));
}

TEST_CASE("a part of an image is decoded as the whole is, however the camera was held") {
  using gpunn::data::Image;
  const int orientation = GENERATE(1, 2, 3, 4, 5, 6, 7, 8);
  const int channels = GENERATE(1, 3);
  CAPTURE(orientation, channels);
  std::string pixels = gradient(70, 50, channels);
  for (std::size_t i = 0; i < pixels.size(); i += 7) pixels[i] = static_cast<char>(pixels[i] ^ 0x55);  // with edges
  const std::string file =
      test::with_orientation(make_jpeg(70, 50, pixels, channels == 1 ? JCS_GRAYSCALE : JCS_RGB, channels), orientation);
  const std::span bytes(reinterpret_cast<const uint8_t*>(file.data()), file.size());
  const Image whole = gpunn::data::decode_image(bytes, "x.jpg");
  REQUIRE(whole.width == (orientation >= 5 ? 50 : 70));
  REQUIRE(whole.turned == (orientation > 1));
  const gpunn::data::ImageRegion part{9, 5, 31, 28};
  const auto choose = [&](int64_t height, int64_t width) {
    REQUIRE(height == whole.height);
    REQUIRE(width == whole.width);
    return part;
  };
  const Image cut = gpunn::data::decode_region(bytes, "x.jpg", choose, part.height, part.width);
  REQUIRE(cut.height == part.height);
  REQUIRE(cut.width == part.width);
  int most = 0;
  for (int64_t y = 0; y < part.height; ++y) {
    for (int64_t i = 0; i < part.width * channels; ++i) {
      const auto at = static_cast<std::size_t>((part.top + y) * whole.width * channels + part.left * channels + i);
      most = std::max(most,
                      std::abs(whole.values[at] - cut.values[static_cast<std::size_t>(y * part.width * channels + i)]));
    }
  }
  CHECK(most == 0);
  // Where a quarter of its pixels is wanted, the file is decoded at half its size: nearly the mean of each square.
  const auto all = [](int64_t height, int64_t width) { return gpunn::data::ImageRegion{0, 0, height, width}; };
  const Image half = gpunn::data::decode_region(bytes, "x.jpg", all, whole.height / 2, whole.width / 2);
  const Image expected = gpunn::data::resize(whole, whole.height / 2, whole.width / 2);
  double difference = 0;
  for (std::size_t i = 0; i < half.values.size(); ++i) difference += std::abs(half.values[i] - expected.values[i]);
  CHECK(difference / static_cast<double>(half.values.size()) < 12);
}

TEST_CASE("PGM and PPM, 8 and 16 bits, with comments") {
  const Reader read;
  CHECK(read("P5\n# made by hand\n3 # width\n 1\n255\n" + bytes_of({1, 2, 3}), 1, 1, 3) == Bytes{1, 2, 3});
  CHECK(read("P5 2 1 15\n" + bytes_of({0, 15}), 1, 1, 2) == Bytes{0, 255});
  CHECK(read("P5 2 1 65535\n" + bytes_of({0x80, 0x80, 0xFF, 0xFF}), 1, 1, 2) == Bytes{128, 255});
  CHECK(read("P6 1 1 255\n" + bytes_of({9, 8, 7}), 3, 1, 1) == Bytes{9, 8, 7});
  CHECK_THROWS_WITH(read("P5 3 1 255\nab", 1, 1, 3), Contains("promises 3 by 1 pixels, and only 2 bytes follow"));
  CHECK_THROWS_WITH(read("P5 99999999999 1 255\nab", 1, 1, 3), Contains("the width is too large"));
  CHECK_THROWS_WITH(read("P5 16384 16384 255\nab", 1, 1, 3), Contains("only 2 bytes follow"));
  CHECK_THROWS_WITH(read("P5 20000 1 255\nab", 1, 1, 3), Contains("20000 by 1") && Contains("16384"));
  CHECK_THROWS_WITH(read("P5 2 1 0\nab", 1, 1, 2), Contains("expected 1 to 65535"));
  CHECK_THROWS_WITH(read("P5 2 1 15\nab", 1, 1, 2), Contains("the largest value is 15"));
  CHECK_THROWS_WITH(read("P5 0 1 255\n", 1, 1, 2), Contains("0 by 1"));
  CHECK_THROWS_WITH(read("P5 2", 1, 1, 2), Contains("expected the height"));
  CHECK_THROWS_WITH(read("P2 1 1 255\n7", 1, 1, 1), Contains("in text"));
}

TEST_CASE("pictures are resized without losing their ink") {
  const Reader read;
  const auto grey = [&](const std::string& pixels, int w, int h, int64_t to_w, int64_t to_h) {
    return read("P5 " + std::to_string(w) + " " + std::to_string(h) + " 255\n" + pixels, 1, to_h, to_w);
  };
  CHECK(grey(std::string(100, '\x64'), 10, 10, 3, 7) == Bytes(21, 100));
  // Twice as wide, bilinear: quarters and three quarters between the centres.
  CHECK(grey(bytes_of({0, 200}), 2, 1, 4, 1) == Bytes{0, 50, 150, 200});
  // A one-pixel line in 280 keeps its share of light: 280/28 = 10 to 1.
  std::string line(std::size_t{280} * 280, '\0');
  for (std::size_t y = 0; y < 280; ++y) line[y * 280 + 143] = '\xff';
  const Bytes small = grey(line, 280, 280, 28, 28);
  double sum = 0;
  for (std::size_t x = 0; x < 28; ++x) sum += small[14 * 28 + x];
  CHECK(std::abs(sum - 25.5) < 2);
}

TEST_CASE("dark ink on paper is inverted where that is asked for") {
  const Reader read;
  Bytes paper(100, 250);
  paper[44] = 5;
  const std::string dark_on_light = make_png(10, 10, bytes_of(paper));
  CHECK(read(dark_on_light, 1, 10, 10, true)[44] == 250);
  CHECK(read(dark_on_light, 1, 10, 10, true)[0] == 5);
  CHECK(read(dark_on_light, 1, 10, 10, false) == paper);
  Bytes board(100, 10);
  board[44] = 240;
  CHECK(read(make_png(10, 10, bytes_of(board)), 1, 10, 10, true) == board);
  CHECK(read(dark_on_light, 3, 10, 10, true)[0] == 250);
}

TEST_CASE("pictures that are too large are refused before memory is taken") {
  const Reader read;
  // Only the header counts: the size is put into a small file, and its check sum made right.
  std::string png = make_png(1, 1, "x");
  const auto put = [&png](std::size_t at, uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i) png[at + i] = static_cast<char>(value >> (24 - 8 * i));
  };
  put(16, 20000);
  put(29, static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(png.data() + 12), 17)));
  CHECK_THROWS_WITH(read(png, 1, 1, 1), Contains("damaged PNG") || Contains("20000"));
  std::string jpeg = make_jpeg(8, 8, std::string(64, 'x'), JCS_GRAYSCALE, 1);
  const std::size_t frame = jpeg.find("\xff\xc0");
  REQUIRE(frame != std::string::npos);
  jpeg.replace(frame + 5, 4, "\xff\xdc\xff\xdc");  // 65500 by 65500
  CHECK_THROWS_WITH(read(jpeg, 1, 1, 1), Contains("65500 by 65500"));
}

TEST_CASE("damaged and truncated pictures are errors that name the file") {
  const Reader read;
  const std::string png = make_png(40, 30, test::counting_bytes(1200));
  const std::string jpeg = make_jpeg(40, 30, test::counting_bytes(1200), JCS_GRAYSCALE, 1);
  const std::string progressive = make_jpeg(40, 30, test::counting_bytes(3600), JCS_RGB, 3, true);
  CHECK_THROWS_WITH(read(png.substr(0, png.size() / 2), 1, 30, 40), Contains("picture") && Contains("damaged PNG"));
  CHECK_THROWS_WITH(read(png.substr(0, 20), 1, 30, 40), Contains("the file ends early"));
  CHECK_THROWS_WITH(read(jpeg.substr(0, jpeg.size() / 2), 1, 30, 40), Contains("picture") && Contains("damaged JPEG"));
  CHECK_THROWS_WITH(read(progressive.substr(0, progressive.size() / 2), 1, 30, 40), Contains("damaged JPEG"));
  CHECK_THROWS_WITH(read(jpeg.substr(0, 10), 1, 30, 40), Contains("damaged JPEG"));
  CHECK_THROWS_WITH(read("GIF89a and so on", 1, 30, 40), Contains("it is a GIF") && Contains("expected a PNG, a JPEG"));
  CHECK_THROWS_WITH(read("", 1, 30, 40), Contains("not an image"));
  CHECK(test::code_of([&] { read_image(read.folder / "none.png", 1, 1, 1, false); }) == gpunn::ExitCode::missing);
  CHECK_THROWS_WITH(read(png, 2, 30, 40), Contains("1 (grey) or 3 (colour)"));
  CHECK_THROWS_WITH(read(png, 1, 0, 40), Contains("0 by 40"));

  // A damaged byte anywhere does nothing worse than an error.
  for (const std::string& whole : {png, jpeg, progressive}) {
    const std::size_t step = whole.size() / 400 + 1;
    for (std::size_t at = 0; at < whole.size(); at += step) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ 0x5A);
      std::size_t values = 1200;
      try {
        values = read(bytes, 1, 30, 40).size();
      } catch (const gpunn::Error&) {
      }
      CHECK(values == 1200);
    }
  }
}
