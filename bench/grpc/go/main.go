// SPDX-License-Identifier: Apache-2.0

// The echo service on grpc-go. Messages stay bytes: the codec hands on the buffers that came,
// so nothing is parsed and nothing copied here.
//
//	grpc-go-server --addr 127.0.0.1:0 [--tls-cert PEM --tls-key PEM]
//
// Prints "ready PORT".
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
)

const nAnswers = 1000

type message struct {
	data mem.BufferSlice
}

type rawCodec struct{}

func (rawCodec) Name() string { return "raw" }

// Marshal gives the reference of the message to the transport.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return v.(*message).data, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	data.Ref()
	v.(*message).data = data
	return nil
}

func echo(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	in := new(message)
	if err := decode(in); err != nil {
		return nil, err
	}
	return in, nil
}

func chat(_ any, stream grpc.ServerStream) error {
	for {
		var in message
		if err := stream.RecvMsg(&in); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := stream.SendMsg(&in); err != nil {
			return err
		}
	}
}

func answers(_ any, stream grpc.ServerStream) error {
	var in message
	if err := stream.RecvMsg(&in); err != nil {
		return err
	}
	defer in.data.Free()
	for i := 0; i < nAnswers; i++ {
		in.data.Ref()
		if err := stream.SendMsg(&in); err != nil {
			return err
		}
	}
	return nil
}

var service = grpc.ServiceDesc{
	ServiceName: "pegboard.test.Echo",
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Echo", Handler: echo}},
	Streams: []grpc.StreamDesc{
		{StreamName: "Chat", Handler: chat, ClientStreams: true, ServerStreams: true},
		{StreamName: "Stream", Handler: answers, ServerStreams: true},
	},
}

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "where to listen")
	cert := flag.String("tls-cert", "", "PEM")
	key := flag.String("tls-key", "", "PEM")
	flag.Parse()

	options := []grpc.ServerOption{grpc.ForceServerCodecV2(rawCodec{})}
	if *cert != "" {
		creds, err := credentials.NewServerTLSFromFile(*cert, *key)
		if err != nil {
			log.Fatal(err)
		}
		options = append(options, grpc.Creds(creds))
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(options...)
	server.RegisterService(&service, nil)
	fmt.Printf("ready %d\n", listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(server.Serve(listener))
}
