// Models, mocked by an independent server (@copilotkit/aimock), behind a proxy
// that can hold an answer in the middle. So a test chooses the moment at which
// it acts, whatever the speed of the machine.
import { createServer, request as send } from 'node:http'
import { LLMock } from '@copilotkit/aimock'
import { atEnd, within } from './server.mjs'

export const key = 'sk-test-key-0123456789'

export class Model {
  static async start(t) {
    const model = new Model()
    model.mock = new LLMock({ port: 0, host: '127.0.0.1', strict: true, logLevel: 'silent' })
    await model.mock.start()
    atEnd(t, () => model.mock.stop())
    model.holds = []
    model.refusals = []
    model.asked = []
    const target = new URL(model.mock.url)
    const proxy = createServer((request, response) => model.pass(target, request, response))
    await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    atEnd(t, () => {
      for (const hold of model.holds) hold.release()
      proxy.closeAllConnections()
      return new Promise((resolve) => proxy.close(resolve))
    })
    model.url = `http://127.0.0.1:${proxy.address().port}`
    return model
  }

  get env() {
    return { OPENAI_BASE_URL: `${this.url}/v1`, OPENAI_API_KEY: key, MODEL: 'gpt-4.1' }
  }

  // script answers a user message, turn by turn. A turn is a text, or an object
  // {content, toolCalls} as aimock has it.
  script(user, ...turns) {
    turns.forEach((turn, i) => {
      const response = typeof turn === 'string' ? { content: turn } : turn
      // A session continues, so turns are counted from the user's last message.
      this.mock.on(
        { predicate: (r) => lastUser(r.messages).text.includes(user) && lastUser(r.messages).turns === i },
        response,
        { chunkSize: 12 },
      )
    })
    return this
  }

  // always gives this answer to a text, whatever messages came since. After an
  // answer was cut off, the server asks for the rest in a message of its own.
  always(user, content) {
    this.mock.on({ predicate: (r) => JSON.stringify(r.messages).includes(user) }, { content }, { chunkSize: 12 })
    return this
  }

  // hold stops the answer to a text after so many events of its stream, until
  // release is called. reached resolves when it has stopped.
  hold(user, after = 5) {
    const hold = { user, after }
    hold.reached = new Promise((resolve) => (hold.arrive = resolve))
    hold.released = new Promise((resolve) => (hold.release = resolve))
    this.holds.push(hold)
    const reached = within(hold.reached, `the model holds its answer to ${user}`)
    reached.catch(() => {})
    return { reached, release: hold.release }
  }

  // refuse answers the next requests that contain a text with this error, one after the other.
  refuse(user, ...answers) {
    this.refusals.push(...answers.map((answer) => ({ user, ...answer })))
  }

  async pass(target, request, response) {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const text = body.toString()
    if (request.method === 'POST') this.asked.push(text) // otherwise the server asks for the list of models
    const refused = this.refusals.findIndex((r) => lastWords(text).includes(r.user))
    if (refused >= 0) {
      const [{ status, headers, body }] = this.refusals.splice(refused, 1)
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
      return
    }
    const at = this.holds.findIndex((h) => lastWords(text).includes(h.user))
    const hold = at < 0 ? undefined : this.holds.splice(at, 1)[0]
    const headers = { ...request.headers, host: target.host, 'content-length': body.length }
    const onward = send(
      { host: target.hostname, port: target.port, path: request.url, method: request.method, headers },
      async (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers)
        let events = 0
        try {
          for await (const chunk of answer) {
            for (const part of chunk.toString().split(/(?<=\n\n)/)) {
              if (hold !== undefined && events === hold.after) {
                hold.arrive()
                await hold.released
              }
              if (response.destroyed) return
              response.write(part)
              if (part.endsWith('\n\n')) events++
            }
          }
          hold?.arrive()
          response.end()
        } catch {
          response.destroy()
        }
      },
    )
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    onward.end(body)
  }
}

function lastUser(messages) {
  const at = messages.findLastIndex((m) => m.role === 'user')
  const content = at < 0 ? '' : messages[at].content
  const text = typeof content === 'string' ? content : (content ?? []).map((p) => p.text ?? '').join(' ')
  return { text, turns: messages.slice(at + 1).filter((m) => m.role === 'assistant').length }
}

// lastWords returns the last user message in a request of either API.
function lastWords(body) {
  let asked
  try {
    asked = JSON.parse(body)
  } catch {
    return ''
  }
  const items = asked.messages ?? asked.input ?? []
  const at = Array.isArray(items) ? items.findLastIndex((m) => m.role === 'user') : -1
  return at < 0 ? '' : JSON.stringify(items[at].content)
}

export function call(name, args) {
  return { name, arguments: JSON.stringify(args) }
}
