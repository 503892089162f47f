// A relay of messages between WebSockets. See ../README.md.
import { WebSocketServer } from 'ws'

const channels = new Map()
const server = new WebSocketServer({ host: '127.0.0.1', port: Number(process.env.PORT), perMessageDeflate: false })
server.on('connection', (socket, request) => {
  const path = request.url
  if (path.startsWith('/sub/')) {
    const name = path.slice('/sub/'.length)
    if (!channels.has(name)) channels.set(name, new Set())
    channels.get(name).add(socket)
    socket.on('close', () => channels.get(name).delete(socket))
    socket.send('ready')
    return
  }
  socket.on('message', (data) => {
    const end = data.indexOf(32)
    const message = data.subarray(end + 1)
    for (const receiver of channels.get(data.toString('latin1', 0, end)) ?? []) {
      receiver.send(message, { binary: false })
    }
  })
})
server.on('listening', () => console.error(`ready 127.0.0.1:${process.env.PORT}`))
