import { useQuery } from '@tanstack/react-query'
import { short } from '../ui/amounts'
import { CopyButton } from '../ui/CopyButton'
import { ErrorState } from '../ui/ErrorState'
import { WarningIcon } from '../ui/icons'
import { Spinner } from '../ui/Spinner'
import { ask } from '../wire/api'
import type { RequestMessage, TurnRequest } from '../wire/native.generated'
import { pretty, Text } from './ModelCalls'

// Prompt shows the request of a model call. The server builds it again from the log, and says whether the parts that
// are not in the log are still the same.
export function Prompt({ run, turn }: { run: string; turn: number }) {
  const { data, error, refetch } = useQuery({
    queryKey: ['runs', run, 'turns', turn, 'request'],
    queryFn: ({ signal }) =>
      ask<TurnRequest>('GET', `/api/v1/runs/${encodeURIComponent(run)}/turns/${turn}/request`, { signal }),
    staleTime: 0,
  })
  if (error !== null && data === undefined)
    return <ErrorState what="The prompt could not be loaded." error={error} retry={() => void refetch()} />
  if (data === undefined) return <Spinner word="Loading the prompt…" />
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1 text-xs text-ink-soft">
        <span>
          {data.messages.length} {data.messages.length === 1 ? 'message' : 'messages'}, {data.tools.length} tools
          {data.mode === 'plan' && ', in plan mode'}
        </span>
        {data.fallback_models !== undefined && <span>falls back to {data.fallback_models.join(', ')}</span>}
        <span className="ml-auto">
          <CopyButton words label="Copy as JSON" text={() => JSON.stringify(data, null, 2)} />
        </span>
      </div>
      <Match request={data} />
      {data.instructions_hidden ? (
        <p className="text-xs text-ink-soft">
          The instructions are shown only to people who may change the agent {data.agent}.
        </p>
      ) : (
        <Text name="Instructions">{data.instructions ?? ''}</Text>
      )}
      {data.messages.map((message, at) => (
        <Message key={at} message={message} calls={namesOf(data.messages)} />
      ))}
      <details>
        <summary className="cursor-pointer text-xs text-ink-soft">{data.tools.length} tools</summary>
        <div className="mt-2 flex flex-col gap-3">
          {data.tools.map((tool) => (
            <Text key={tool.name} name={tool.name}>
              {`${tool.description}\n\n${JSON.stringify(tool.parameters, null, 2)}`}
            </Text>
          ))}
        </div>
      </details>
    </div>
  )
}

// Match says whether this is exactly the request that was sent.
function Match({ request }: { request: TurnRequest }) {
  const changed = [
    ...(request.instructions_match === 'changed' ? ['the instructions'] : []),
    ...(request.tools_match === 'changed' ? ['the tools'] : []),
  ].join(' and ')
  if (changed !== '')
    return (
      <p className="flex items-start gap-2 rounded-md bg-waiting-soft px-3 py-2 text-xs text-waiting">
        <WarningIcon className="mt-0.5 shrink-0" />
        <span>
          Since this call, {changed} have changed: skills, other agents, tools or the user’s context. They are shown as
          they are now. The messages are those that were sent.
        </span>
      </p>
    )
  return (
    <p className="text-xs text-ink-soft">
      {request.instructions_match === 'same'
        ? 'Everything here is what was sent: digests of the instructions and tools match. Only the secret marker ' +
          'against leaks is left out.'
        : 'It is not known whether instructions and tools were the same: no digest of them was stored with this call.'}
      {request.agent_redefined && ' The agent’s own instructions have changed since; those of this run are shown.'}
    </p>
  )
}

function namesOf(messages: RequestMessage[]): Map<number, string> {
  return new Map(messages.flatMap((message) => (message.calls ?? []).map((call) => [call.id, call.name] as const)))
}

function Message({ message, calls }: { message: RequestMessage; calls: Map<number, string> }) {
  const name =
    message.role === 'tool' ? `Result of ${calls.get(message.call ?? 0) ?? 'a tool'}` : titles[message.role]
  const images = message.images ?? []
  return (
    <div className="flex flex-col gap-2">
      {message.thinking !== undefined && <Text name="Assistant, thinking">{message.thinking}</Text>}
      {(message.text !== '' || message.calls === undefined) && (
        <Text
          name={name ?? message.role}
          aside={
            <>
              {message.incomplete && <span>cut off</span>}
              {images.map((image, at) => (
                <span key={at}>
                  {image.media_type}, {short(image.bytes)} bytes
                </span>
              ))}
            </>
          }
        >
          {message.text}
        </Text>
      )}
      {message.calls?.map((call) => (
        <Text key={call.id} name={`Assistant calls ${call.name}`}>
          {pretty(call.arguments)}
        </Text>
      ))}
    </div>
  )
}

const titles: Record<string, string> = { user: 'User', assistant: 'Assistant' }
