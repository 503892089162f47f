import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { Button } from '../ui/Button'
import { ErrorState } from '../ui/ErrorState'
import { Field, TextArea, TextInput } from '../ui/Field'
import { Exact, Mono } from '../ui/Mono'
import { Box } from '../ui/Page'
import { StatusBadge } from '../ui/StatusBadge'
import { toast } from '../ui/toast'
import { ask } from '../wire/api'
import type { ServerSetup, ServerTrial, ToolServer } from '../wire/native.generated'
import { pairs, pairsOf, words } from './serverText'

interface ServerFormProps {
  server?: ToolServer // the server to change; none: a new one
  local: boolean // programs may be entered
  done: () => void
}

// ServerForm edits an MCP server: a program or an address. It is tested before it is saved.
export function ServerForm({ server, local, done }: ServerFormProps) {
  const queries = useQueryClient()
  const was = server?.setup
  const [name, setName] = useState(server?.name ?? '')
  const [program, setProgram] = useState(local && was?.url === undefined)
  const [command, setCommand] = useState((was?.command ?? []).map(quotedWord).join(' '))
  const [url, setUrl] = useState(was?.url ?? '')
  const [env, setEnv] = useState(pairs(was?.env ?? {}, '='))
  const [headers, setHeaders] = useState(pairs(was?.headers ?? {}, ':'))
  const [read, setRead] = useState((was?.read ?? []).join('\n'))
  const [flags, setFlags] = useState({
    writes: was?.writes ?? false,
    network: was?.network ?? false,
    bare: was?.bare ?? false,
  })
  const body = (): ServerSetup =>
    program
      ? { command: words(command), env: pairsOf(env, '='), read: linesOf(read), ...flags }
      : { url: url.trim(), headers: pairsOf(headers, ':') }
  const path = `/api/v1/mcp/${encodeURIComponent(name.trim())}`
  const test = useMutation({ mutationFn: () => ask<ServerTrial>('POST', path + '/test', { body: body() }) })
  const save = useMutation({
    mutationFn: () => ask<{ servers: ToolServer[] }>('PUT', path, { body: body() }),
    onSuccess: (now) => {
      queries.setQueryData(['mcp'], now)
      toast('Saved. Agents can use it from their next turn on.')
      done()
    },
  })
  const ready = name.trim() !== '' && (program ? words(command).length > 0 : url.trim() !== '')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (ready) save.mutate()
  }
  return (
    <form onSubmit={submit} aria-label={server === undefined ? 'Add a tool server' : `Change ${server.name}`}>
      <Box className="flex flex-col gap-4 p-4">
        {local && (
          <fieldset className="flex flex-wrap gap-4 text-sm">
            <legend className="mb-1 font-medium">Type</legend>
            {[
              [true, 'Program on this machine'],
              [false, 'Address (streamable HTTP)'],
            ].map(([is, label]) => (
              <label key={String(is)} className="flex items-center gap-2">
                <input
                  type="radio"
                  name="kind"
                  className="accent-accent"
                  checked={program === is}
                  onChange={() => setProgram(is as boolean)}
                />
                {label}
              </label>
            ))}
          </fieldset>
        )}
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label="Name of the server" hint="a-z, 0-9 and -. It begins the names of the tools: notes__search.">
            {(control) => (
              <TextInput
                {...control}
                required
                disabled={server !== undefined}
                placeholder="notes"
                spellCheck={false}
                value={name}
                onChange={(event) => setName(event.target.value)}
              />
            )}
          </Field>
          {program ? (
            <Field label="Command" hint="The program and its arguments. Quote words that have spaces.">
              {(control) => (
                <TextInput
                  {...control}
                  className="font-mono"
                  spellCheck={false}
                  placeholder="/opt/tools/mcp-server-notes --stdio"
                  value={command}
                  onChange={(event) => setCommand(event.target.value)}
                />
              )}
            </Field>
          ) : (
            <Field label="URL" hint={local ? 'http or https.' : 'https, and not inside the network of the server.'}>
              {(control) => (
                <TextInput
                  {...control}
                  type="url"
                  spellCheck={false}
                  placeholder="https://tools.example.com/mcp"
                  value={url}
                  onChange={(event) => setUrl(event.target.value)}
                />
              )}
            </Field>
          )}
        </div>
        <Field
          label={program ? 'Environment' : 'Headers'}
          hint={
            `One ${program ? 'NAME=value' : 'Name: value'} per line. Values are stored encrypted and not shown. ` +
            'Leave a value empty to keep it.'
          }
        >
          {(control) => (
            <TextArea
              {...control}
              rows={2}
              className="font-mono"
              spellCheck={false}
              autoComplete="off"
              value={program ? env : headers}
              onChange={(event) => (program ? setEnv : setHeaders)(event.target.value)}
            />
          )}
        </Field>
        {program && (
          <>
            <Field
              label="Folders it may read"
              hint="Besides the workspace, one per line. The program must be in one of these, or under /usr or /opt."
            >
              {(control) => (
                <TextArea
                  {...control}
                  rows={2}
                  className="font-mono"
                  spellCheck={false}
                  value={read}
                  onChange={(event) => setRead(event.target.value)}
                />
              )}
            </Field>
            <fieldset className="flex flex-wrap gap-4 text-sm">
              <legend className="mb-1 font-medium">Permissions</legend>
              {(
                [
                  ['writes', 'Change the workspace'],
                  ['network', 'Reach the network'],
                  ['bare', 'Run without a sandbox, with all rights of the server'],
                ] as const
              ).map(([flag, label]) => (
                <label key={flag} className="flex items-center gap-2">
                  <input
                    type="checkbox"
                    className="accent-accent"
                    checked={flags[flag]}
                    onChange={(event) => setFlags({ ...flags, [flag]: event.target.checked })}
                  />
                  {label}
                </label>
              ))}
            </fieldset>
          </>
        )}
        <div className="flex flex-wrap gap-2">
          <Button type="submit" kind="primary" busy={save.isPending} disabled={!ready}>
            Save
          </Button>
          <Button busy={test.isPending} disabled={!ready} onClick={() => test.mutate()}>
            Test
          </Button>
          <Button kind="quiet" onClick={done}>
            Cancel
          </Button>
        </div>
        {save.error !== null && <ErrorState what="The server was not saved." error={save.error} />}
        {test.error !== null && <ErrorState what="The server was not started." error={test.error} />}
        {test.data !== undefined && !test.isPending && <Tried trial={test.data} />}
      </Box>
    </form>
  )
}

function Tried({ trial: { works, reason, output, tools } }: { trial: ServerTrial }) {
  return (
    <div role="status" className="flex flex-col gap-2 text-sm">
      <p className="flex flex-wrap items-baseline gap-2">
        <StatusBadge status={works ? 'done' : 'failed'}>{works ? 'works' : 'does not work'}</StatusBadge>
        <span>{works ? (tools.length === 1 ? '1 tool:' : `${tools.length} tools:`) : reason}</span>
      </p>
      {tools.length > 0 && (
        <ul aria-label="Tools it offers" className="flex flex-col gap-1">
          {tools.map((tool) => (
            <li key={tool.name}>
              <Mono>{tool.name}</Mono>{' '}
              <span className="text-ink-soft">
                <Exact>{tool.description}</Exact>
              </span>
            </li>
          ))}
        </ul>
      )}
      {output !== undefined && (
        <>
          <p>The last lines that it wrote to stderr:</p>
          <Mono block className="max-h-60 text-xs">
            {output}
          </Mono>
        </>
      )}
    </div>
  )
}

const linesOf = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')

const quotedWord = (word: string) =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `"${word.replaceAll(/["\\]/g, '\\$&')}"`
