import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useRouterState } from '@tanstack/react-router'
import { Suspense, lazy, useState } from 'react'
import { Button } from '../ui/Button'
import { classes } from '../ui/classes'
import { CopyButton } from '../ui/CopyButton'
import { Counts, Diff } from '../ui/Diff'
import { EmptyState } from '../ui/EmptyState'
import { ErrorState } from '../ui/ErrorState'
import { Select } from '../ui/Field'
import { ChevronDownIcon, ChevronRightIcon } from '../ui/icons'
import { Exact, Mono } from '../ui/Mono'
import { Page } from '../ui/Page'
import { RelativeTime } from '../ui/RelativeTime'
import { Spinner } from '../ui/Spinner'
import { count, parseDiff } from '../ui/unified'
import { ask } from '../wire/api'
import { useBus } from '../wire/bus'
import type { Session } from '../wire/native.generated'
import { changesQuery, fileQuery, folderQuery, projectsQuery, type LastChanges, type Project } from './queries'

const Code = lazy(() => import('./Code').then((module) => ({ default: module.Code })))

// FilesPage shows the files of a project. The address names the project and the file.
export function FilesPage() {
  const search = useRouterState({ select: (state) => state.location.search as Record<string, unknown> })
  const given = (key: string) => (search[key] === undefined ? '' : String(search[key]))
  const projects = useQuery(projectsQuery)
  // A link from a conversation names the session, which knows its project.
  const session = useQuery({
    queryKey: ['sessions', given('session')],
    queryFn: ({ signal }) =>
      ask<Session>('GET', `/api/v1/sessions/${encodeURIComponent(given('session'))}`, { signal }),
    enabled: given('session') !== '',
  })
  const all = projects.data ?? []
  const named = given('project') || session.data?.project || ''
  const project = all.find((one) => one.id === named || one.root === named) ?? all[0]
  if (projects.error !== null)
    return (
      <Page title="Files">
        <ErrorState
          what="The projects could not be loaded."
          error={projects.error}
          retry={() => void projects.refetch()}
        />
      </Page>
    )
  if (projects.isPending || (given('session') !== '' && session.isPending))
    return (
      <Page title="Files">
        <Spinner word="Loading the files…" />
      </Page>
    )
  if (project === undefined)
    return (
      <Page title="Files">
        <EmptyState title="No project">
          This tenant has no project. An administrator adds one with <Mono>--workspace</Mono> when the server starts.
        </EmptyState>
      </Page>
    )
  return <Shown key={project.id} project={project} projects={all} path={within(project.root, given('path'))} />
}

// within converts a path from a tool call into a path from the top of a project.
function within(root: string, path: string): string {
  return path.startsWith(root + '/') ? path.slice(root.length + 1) : path.replace(/^\.\//, '')
}

function Shown({ project, projects, path }: { project: Project; projects: Project[]; path: string }) {
  const navigate = useNavigate()
  const queries = useQueryClient()
  const changes = useQuery(changesQuery(project.root)).data ?? undefined
  useBus(['run'], (message) => {
    if (message.phase === 'sync' || message.phase === 'resync')
      void queries.invalidateQueries({ queryKey: ['files', project.root] })
  })
  return (
    <Page
      wide
      title="Files"
      lead={
        changes === undefined ? (
          'The files of the project, as they are now.'
        ) : (
          <>
            <span aria-hidden="true" className="text-waiting">
              ●
            </span>{' '}
            marks the files that the last run of {changes.run.agent} changed,{' '}
            <Link to="/runs/$id" params={{ id: changes.run.id }} className="text-accent underline underline-offset-2">
              <RelativeTime at={changes.run.started_at} />
            </Link>
          </>
        )
      }
      actions={
        projects.length > 1 ? (
          <Select
            aria-label="Project"
            value={project.id}
            onChange={(event) =>
              void navigate({ to: '/files', search: { project: event.target.value } as never })
            }
          >
            {projects.map((one) => (
              <option key={one.id} value={one.id}>
                {one.name}
              </option>
            ))}
          </Select>
        ) : undefined
      }
    >
      <div className="grid min-h-0 gap-4 md:grid-cols-[18rem_1fr]">
        <nav
          aria-label="Files of the project"
          className="max-h-[75dvh] overflow-auto rounded-lg border border-line bg-raised p-2 text-sm"
        >
          <Folder project={project} path="" chosen={path} changes={changes} />
        </nav>
        {path === '' ? (
          <EmptyState title="Choose a file">
            {changes === undefined ? (
              'Files that a run changes are marked in the list.'
            ) : (
              <ul className="flex flex-col items-center gap-1">
                {[...changes.files].map(([name, change]) => (
                  <li key={name}>
                    <FileName project={project} path={name}>
                      {name}
                    </FileName>{' '}
                    <span className="text-xs">{change.summary.toLowerCase()}</span>
                  </li>
                ))}
              </ul>
            )}
          </EmptyState>
        ) : (
          <File key={path} project={project} path={path} changes={changes} />
        )}
      </div>
    </Page>
  )
}

function FileName({ project, path, children }: { project: Project; path: string; children: string }) {
  return (
    <Link
      to="/files"
      search={{ project: project.id, path } as never}
      className="text-accent underline underline-offset-2"
    >
      <Exact>{children}</Exact>
    </Link>
  )
}

interface FolderProps {
  project: Project
  path: string
  chosen: string
  changes?: LastChanges
}

function Folder({ project, path, chosen, changes }: FolderProps) {
  const { data, error, refetch } = useQuery(folderQuery(project.root, path))
  if (error !== null && data === undefined)
    return <ErrorState what="This folder could not be loaded." error={error} retry={() => void refetch()} />
  if (data === undefined) return <Spinner word="Loading…" />
  if (data.length === 0) return <p className="px-2 py-1 text-xs text-ink-soft">This folder is empty.</p>
  return (
    <ul className={classes(path !== '' && 'ml-3 border-l border-line pl-1')}>
      {data.map((entry) =>
        entry.isDir ? (
          <Branch key={entry.path} name={entry.name} project={project} path={entry.path} {...{ chosen, changes }} />
        ) : (
          <li key={entry.path}>
            <Link
              to="/files"
              search={{ project: project.id, path: entry.path } as never}
              aria-current={entry.path === chosen ? 'page' : undefined}
              className={classes(
                'flex min-h-7 items-center gap-1.5 rounded px-2 hover:bg-sunken max-md:min-h-11',
                entry.path === chosen && 'bg-accent-soft',
              )}
            >
              <span className="min-w-0 truncate pl-4">
                <Exact>{entry.name}</Exact>
              </span>
              {changes?.files.has(entry.path) && <Changed />}
            </Link>
          </li>
        ),
      )}
    </ul>
  )
}

function Branch({ name, project, path, chosen, changes }: FolderProps & { name: string }) {
  const inside = (file: string) => file.startsWith(path + '/')
  const [open, setOpen] = useState(inside(chosen))
  const changed = changes !== undefined && [...changes.files.keys()].some(inside)
  return (
    <li>
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="flex min-h-7 w-full items-center gap-1.5 rounded px-1 text-left hover:bg-sunken max-md:min-h-11"
      >
        {open ? <ChevronDownIcon className="shrink-0" /> : <ChevronRightIcon className="shrink-0" />}
        <span className="min-w-0 truncate">
          <Exact>{name}</Exact>
        </span>
        {changed && <Changed />}
      </button>
      {open && <Folder project={project} path={path} chosen={chosen} changes={changes} />}
    </li>
  )
}

function Changed() {
  return (
    <span className="ml-auto shrink-0 text-xs text-waiting">
      <span aria-hidden="true">●</span>
      <span className="sr-only">changed by the last run</span>
    </span>
  )
}

function File({ project, path, changes }: { project: Project; path: string; changes?: LastChanges }) {
  const change = changes?.files.get(path)
  const [diff, setDiff] = useState(false)
  const { data, error, refetch } = useQuery(fileQuery(project.root, path))
  return (
    <section aria-label={path} className="min-w-0 overflow-hidden rounded-lg border border-line">
      <header className="flex min-h-10 flex-wrap items-center gap-2 border-b border-line bg-raised px-3 text-sm">
        <Mono bare className="min-w-0 truncate text-xs">
          {path}
        </Mono>
        {change !== undefined && <span className="text-xs text-waiting">{change.summary.toLowerCase()}</span>}
        {change?.diff !== undefined && change.diff !== '' && (
          <span className="text-xs">
            <Counts {...count(parseDiff(change.diff))} />
          </span>
        )}
        <span className="ml-auto flex items-center gap-1">
          {change?.diff !== undefined && change.diff !== '' && (
            <Button small kind="quiet" aria-pressed={diff} onClick={() => setDiff(!diff)}>
              {diff ? 'Show the file' : 'Show the last change'}
            </Button>
          )}
          {data !== undefined && <CopyButton text={data} label="Copy the file" />}
        </span>
      </header>
      {diff && change?.diff !== undefined ? (
        <div className="-m-px">
          <Diff text={change.diff} label={`Changes of ${path}`} named={false} />
        </div>
      ) : error !== null && data === undefined ? (
        <div className="p-4">
          <ErrorState what="This file cannot be shown." error={error} retry={() => void refetch()} />
        </div>
      ) : data === undefined ? (
        <div className="p-4">
          <Spinner word="Loading the file…" />
        </div>
      ) : data === '' ? (
        <p className="p-4 text-sm text-ink-soft">This file is empty.</p>
      ) : (
        <Suspense fallback={<Spinner word="Loading…" />}>
          <Code text={data} path={path} />
        </Suspense>
      )}
    </section>
  )
}
