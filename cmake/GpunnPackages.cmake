# The Debian packages, a component of `cmake --install` each: gpunn, gpunn-dev, gpunn-cuda and python3-gpunn.
# packaging/debian/make_packages builds them, and try_packages tries them in a root of its own.
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL gpunn dev)
if(GPUNN_WITH_CUDA)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
endif()
if(GPUNN_PYTHON)
  list(APPEND CPACK_COMPONENTS_ALL python3)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_BINARY_DIR}/packages)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)

set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_NAME} built using CMake") # its default: each package has its own
set(debian ${PROJECT_SOURCE_DIR}/packaging/debian)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The gpunn authors <gpunn@users.noreply.github.com>")
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Dependencies on packages of this build and of NVIDIA, whose libraries may also come from elsewhere.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib ${CUDAToolkit_LIBRARY_DIR})
set(CPACK_PRE_BUILD_SCRIPTS ${debian}/finish.cmake)

# gpunn_debian_package(<component> <package> <section> <DEPENDS or RECOMMENDS ...> ...): the description is a file.
function(gpunn_debian_package component package section)
  cmake_parse_arguments(PARSE_ARGV 3 of "" "DEPENDS;RECOMMENDS;SUGGESTS" "")
  string(TOUPPER ${component} name)
  file(READ ${debian}/${package}.description description)
  string(STRIP "${description}" description)
  set(CPACK_DEBIAN_${name}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${name}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${name}_PACKAGE_DEPENDS "${of_DEPENDS}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${name}_PACKAGE_RECOMMENDS "${of_RECOMMENDS}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${name}_PACKAGE_SUGGESTS "${of_SUGGESTS}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${name}_DESCRIPTION "${description}" PARENT_SCOPE)
  set(overrides ${debian}/${package}.lintian-overrides)
  if(EXISTS ${overrides})
    install(FILES ${overrides} DESTINATION share/lintian/overrides RENAME ${package} COMPONENT ${component})
  endif()
  install(FILES ${debian}/copyright DESTINATION share/doc/${package} COMPONENT ${component})
  install(FILES ${debian}/changelog DESTINATION share/doc/${package} RENAME changelog.Debian COMPONENT ${component})
endfunction()

set(same "gpunn (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
gpunn_debian_package(gpunn gpunn science SUGGESTS "gpunn-cuda, gpunn-dev, python3-gpunn")
file(WRITE ${PROJECT_BINARY_DIR}/shlibs "libgpunn ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} ${same}\n")
set(CPACK_DEBIAN_GPUNN_PACKAGE_CONTROL_EXTRA ${debian}/triggers ${PROJECT_BINARY_DIR}/shlibs)
gpunn_debian_package(dev gpunn-dev libdevel DEPENDS "${same}" SUGGESTS "cmake, g++")
gpunn_debian_package(cuda gpunn-cuda science DEPENDS "${same}" RECOMMENDS "libcublas-13-0, libcudnn9-cuda-13")
if(GPUNN_PYTHON)
  # Python packages compile their modules on installation, and remove the compiled files.
  set(CPACK_DEBIAN_PYTHON3_PACKAGE_CONTROL_EXTRA ${debian}/python3-gpunn.control/postinst
                                                 ${debian}/python3-gpunn.control/prerm)
  get_directory_property(minor DIRECTORY ${PROJECT_SOURCE_DIR}/python DEFINITION Python_VERSION_MINOR)
  math(EXPR next "${minor} + 1")
  gpunn_debian_package(
    python3 python3-gpunn python
    DEPENDS "${same}, python3 (>= 3.${minor}), python3 (<< 3.${next}), python3-numpy, python3-tqdm"
    SUGGESTS "python3-matplotlib, python3-pandas, python3-sklearn")
endif()
include(CPack)
