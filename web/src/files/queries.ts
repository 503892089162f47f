import { queryOptions } from '@tanstack/react-query'
import { ask } from '../wire/api'
import { readLog } from '../wire/log'
import type { FileEntry } from '../wire/bus.generated'
import type { Run } from '../wire/native.generated'

export interface Project {
  id: string
  root: string
  name: string
}

export const projectsQuery = queryOptions({
  queryKey: ['projects'],
  queryFn: ({ signal }) => ask<Project[]>('GET', '/api/v1/projects', { signal }),
  staleTime: 60_000,
})

// ofProject is the query of a request about one project; no project: the first.
export function ofProject(project: string): string {
  return project === '' ? '' : `?${new URLSearchParams({ project })}`
}

// inProject names a path in a project, for an address; no project: the first.
export function inProject(project: string, path: string): string {
  const query = new URLSearchParams({ path })
  if (project !== '') query.set('project_root', project)
  return query.toString()
}

export const folderQuery = (project: string, path: string) =>
  queryOptions({
    queryKey: ['files', project, 'folder', path],
    queryFn: ({ signal }) => ask<FileEntry[]>('GET', `/api/files?${inProject(project, path)}`, { signal }),
  })

export const fileQuery = (project: string, path: string) =>
  queryOptions({
    queryKey: ['files', project, 'file', path],
    queryFn: async ({ signal }) =>
      (await ask<{ content: string }>('GET', `/api/file?${inProject(project, path)}`, { signal })).content,
  })

export interface Change {
  summary: string
  diff?: string
}

export interface LastChanges {
  run: Run
  files: Map<string, Change>
}

const looks = 5 // number of runs to search for the last change

// changesQuery returns the changes of the last run that changed files of a project.
export const changesQuery = (project: string) =>
  queryOptions({
    queryKey: ['files', project, 'changes'],
    queryFn: async ({ signal }): Promise<LastChanges | null> => {
      const query = new URLSearchParams({ limit: String(looks) })
      if (project !== '') query.set('project', project)
      const { runs } = await ask<{ runs: Run[] }>('GET', `/api/v1/runs?${query}`, { signal })
      for (const run of runs) {
        // The report of a stopped run follows its end, and comes before the next run.
        let ended = false
        const log = await readLog(run.session, {
          after: run.run,
          until: (event) => {
            ended ||= event.type === 'RunFinished' && event.run === run.run
            return event.type === 'FilesChanged' || (ended && event.type === 'RunStarted')
          },
          signal,
        })
        const last = log.at(-1)
        if (last?.type === 'FilesChanged')
          return { run, files: new Map(last.body.files.map(({ path, summary, diff }) => [path, { summary, diff }])) }
      }
      return null
    },
  })
