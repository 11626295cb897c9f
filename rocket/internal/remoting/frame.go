package remoting

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxFrame bounds what is read. Brokers' answers to the questions asked here
// have some tens of kilobytes.
const maxFrame = 16 << 20

// headerJSON is the one header encoding in use: servers answer in the
// encoding of the request.
const headerJSON = 0

// responseFlag marks a response.
const responseFlag = 1

// ErrFrame reports bytes that are not a frame.
var ErrFrame = errors.New("not a remoting frame")

// Frame is a request or a response.
type Frame struct {
	Code int `json:"code"`
	// Language is the sender's; servers insist on one that they know.
	Language string `json:"language"`
	// Version is the sender's, an ordinal of RocketMQ's own MQVersion.
	Version int   `json:"version"`
	Opaque  int32 `json:"opaque"`
	Flag    int   `json:"flag"`
	// Remark says why, in a response that is not a success.
	Remark string            `json:"remark,omitempty"`
	Fields map[string]string `json:"extFields,omitempty"`
	Body   []byte            `json:"-"`
}

// Append adds the frame's bytes to b.
func (f Frame) Append(b []byte) ([]byte, error) {
	header, err := json.Marshal(f)
	if err != nil {
		return b, fmt.Errorf("encode header: %w", err)
	}
	length := 4 + len(header) + len(f.Body)
	if length > maxFrame {
		return b, fmt.Errorf("encode: %w: %d bytes, at most %d", ErrFrame, length, maxFrame)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(length))
	b = binary.BigEndian.AppendUint32(b, uint32(len(header))) // encoding 0 in the high byte
	return append(append(b, header...), f.Body...), nil
}

// ReadFrame reads one frame. The error is io.EOF when there is none, and wraps
// [ErrFrame] when the bytes are not one.
func ReadFrame(r *bufio.Reader) (Frame, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Frame{}, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length < 4 || length > maxFrame {
		return Frame{}, fmt.Errorf("%w: length %d, want 4 to %d", ErrFrame, length, maxFrame)
	}
	// Grown as the bytes come: a length alone must not cost memory.
	data, err := io.ReadAll(io.LimitReader(r, int64(length)))
	if err != nil {
		return Frame{}, err
	}
	if len(data) < int(length) {
		return Frame{}, io.ErrUnexpectedEOF
	}
	return parse(data)
}

// parse reads a frame without its length.
func parse(data []byte) (Frame, error) {
	word := binary.BigEndian.Uint32(data)
	encoding, n := word>>24, int(word&0xffffff)
	data = data[4:]
	if encoding != headerJSON {
		return Frame{}, fmt.Errorf("%w: header encoding %d, want JSON (%d)", ErrFrame, encoding, headerJSON)
	}
	if n > len(data) {
		return Frame{}, fmt.Errorf("%w: header of %d bytes in %d", ErrFrame, n, len(data))
	}
	var f Frame
	if err := json.Unmarshal(data[:n], &f); err != nil {
		return Frame{}, fmt.Errorf("%w: header: %w", ErrFrame, err)
	}
	f.Body = data[n:]
	return f, nil
}
