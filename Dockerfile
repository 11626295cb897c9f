# One image with the three programs; which one runs is the container's command.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The build context has no history to take it from: --build-arg VERSION=v1.2.3.
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X github.com/bide-mq/bide/internal/service.version=${VERSION}" -o /out/ ./cmd/...

# No shell and no packages, but CA certificates and time zones.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/ /usr/local/bin/
USER 65532:65532
CMD ["bide", "--help"]
