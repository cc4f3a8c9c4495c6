// SPDX-License-Identifier: Apache-2.0
// Echoes bodies, with node's own servers: echo.mjs http|http2. Prints where it listens.

import http from 'node:http';
import http2 from 'node:http2';

function echo(request, response) {
    const pieces = [];

    request.on('data', (piece) => pieces.push(piece));
    request.on('end', () => {
        const body = Buffer.concat(pieces);

        response.writeHead(200, {'content-type': 'application/json', 'content-length': body.length});
        response.end(body);
    });
}

const server = (process.argv[2] === 'http2' ? http2 : http).createServer(echo);

server.listen(0, '127.0.0.1', () => console.log(`listening on 127.0.0.1:${server.address().port}`));
process.stdin.on('end', () => process.exit(0)).resume();
