import type { LogEvent } from '../wire/log.generated'
import type { Usage } from '../wire/native.generated'

// The model calls of a run, from its log. Pure. The log does not contain the prompt of a call: the server rebuilds it,
// see Prompt.tsx.

export interface ModelCall {
  turn: number // the seq of TurnStarted
  number: number
  model?: string // the model that was called first
  answeredBy?: string // another model, if the first could not answer
  start: number // milliseconds since the epoch
  first?: number // when the first piece of text or thinking was stored
  end?: number
  stop?: string
  problem?: string
  retries: number
  usage?: Usage
  context?: { tokens: number; limit: number; estimated?: boolean }
  said: Said[]
  asked: { seq: number; name: string; arguments: string }[]
}

export interface Said {
  kind: string // text or thinking
  text: string
  incomplete?: boolean
}

export function modelCalls(log: LogEvent[], run: number): ModelCall[] {
  const calls: ModelCall[] = []
  const outputs = new Map<number, Said>()
  const at = (turn: number, change: (call: ModelCall) => void) => {
    const call = calls.findLast((one) => one.turn === turn)
    if (call !== undefined) change(call)
  }
  for (const event of log) {
    if (event.run !== run) continue
    const time = Date.parse(event.at)
    switch (event.type) {
      case 'TurnStarted': {
        const { number, model } = event.body
        calls.push({ turn: event.seq, number, model: model || undefined, start: time, retries: 0, said: [], asked: [] })
        break
      }
      case 'ModelFellBack':
        at(event.body.turn, (call) => (call.answeredBy = event.body.actual))
        break
      case 'ProblemReported': {
        const { retry } = event.body
        if (retry !== undefined && !retry.gave_up) at(retry.turn, (call) => call.retries++)
        break
      }
      case 'OutputStarted':
        at(event.body.turn, (call) => {
          const said: Said = { kind: event.body.kind, text: '' }
          call.first ??= time
          call.said.push(said)
          outputs.set(event.seq, said)
        })
        break
      case 'OutputAppended': {
        const said = outputs.get(event.body.output)
        if (said !== undefined) said.text += event.body.text
        break
      }
      case 'OutputFinished': {
        const said = outputs.get(event.body.output)
        if (said === undefined) break
        said.text = event.body.text // the chunks may have been deleted
        said.incomplete = event.body.incomplete
        break
      }
      case 'ToolCallRequested':
        at(event.body.turn, (call) =>
          call.asked.push({ seq: event.seq, name: event.body.name, arguments: event.body.arguments }),
        )
        break
      case 'TurnFinished':
        at(event.body.turn, (call) => {
          call.end = time
          call.stop = event.body.stop
          call.usage = event.body.usage
          call.problem = event.body.message || undefined
        })
        break
      case 'ContextMeasured':
        at(event.body.turn, (call) => (call.context = event.body))
        break
    }
  }
  return calls
}

// saidText joins the model's text of one kind.
export function saidText(call: ModelCall, kind: string): string {
  return call.said
    .filter((said) => said.kind === kind)
    .map((said) => said.text)
    .join('\n\n')
}

// stops are the reasons for the end of a call, in words.
const stops: Record<string, string> = {
  end: 'The model finished its answer.',
  tools: 'The model asked for tools.',
  length: 'The model reached its output limit.',
  refusal: 'The model refused to answer.',
  cut: 'The call was cut off.',
  failed: 'The call failed.',
  cancelled: 'The call was stopped.',
}

export function stopWords(stop: string | undefined): string {
  return stop === undefined ? 'The model is answering.' : (stops[stop] ?? stop)
}
