# A service for one model:
#
#   docker build -t setconv --build-arg TORCH_INDEX=... .
#   docker run -p 8000:8000 -v "$PWD/model:/model:ro" -e SETCONV_TOKEN setconv
#
# TORCH_INDEX is the index of PyTorch's builds for the CPU, which its installation page names.
# Without it the image has the usual build, and gigabytes of CUDA.

FROM python:3.12-slim AS build
RUN python -m venv /opt/setconv
ENV PATH=/opt/setconv/bin:$PATH
WORKDIR /setconv
COPY constraints.txt ./
ARG TORCH_INDEX
# A layer of its own: the largest package changes least.
RUN pip install --no-cache-dir -c constraints.txt torch \
    ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"}
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir -c constraints.txt ".[cli,serve,text]"

FROM python:3.12-slim
COPY --from=build /opt/setconv /opt/setconv
# A model comes with all that it needs: nothing is fetched.
ENV PATH=/opt/setconv/bin:$PATH HF_HUB_OFFLINE=1
RUN useradd --create-home --uid 1000 setconv
USER 1000
WORKDIR /home/setconv
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["python", "-c", \
    "import http.client as h; c = h.HTTPConnection('127.0.0.1', 8000, timeout=4); \
     c.request('GET', '/health/ready'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["setconv", "serve"]
CMD ["/model", "--host", "0.0.0.0"]
