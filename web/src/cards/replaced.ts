import { useQuery } from '@tanstack/react-query'
import { inProject } from '../files/queries'
import { ask } from '../wire/api'
import { writtenFile } from './show'
import type { FileEntry } from '../wire/bus.generated'

// A Replaced is the file that a call would overwrite. Without lines it is not known whether the file exists.
interface Replaced {
  path: string
  lines?: number
}

// useReplaced looks up the file that a call wants to write: null, if it does
// not exist, so that nothing is lost. It ignores other tools. project is the
// root of the call's project; none: the first project of the tenant.
export function useReplaced(tool: string, show: string, project = ''): Replaced | null {
  const path = tool === 'write_file' ? writtenFile(show) : undefined
  const file = useQuery({
    queryKey: ['file', project, path],
    queryFn: ({ signal }) => linesOf(project, path!, signal),
    enabled: path !== undefined,
    retry: false,
    staleTime: 2_000,
  })
  if (tool !== 'write_file') return null
  if (file.data === 0) return null
  return { path: path ?? 'the file', lines: file.data }
}

// A folder with more entries is not listed completely.
const mostListed = 5_000

// linesOf counts the lines of a file; 0 means that the file does not exist. It searches from the top folder down, so
// that no request asks for a missing file: a browser logs the 404 as an error.
async function linesOf(project: string, path: string, signal: AbortSignal): Promise<number> {
  let at = ''
  for (const part of path.split('/').filter((part) => part !== '' && part !== '.')) {
    const entries = await ask<FileEntry[]>('GET', `/api/files?${inProject(project, at)}`, { signal })
    if (!entries.some((entry) => entry.name === part)) {
      if (entries.length >= mostListed) throw new Error('the folder is too large to be looked through')
      return 0
    }
    at = at === '' ? part : `${at}/${part}`
  }
  const { content } = await ask<{ content: string }>('GET', `/api/file?${inProject(project, at)}`, { signal })
  return content.replace(/\n$/, '').split('\n').length
}

export function wordsOf({ path, lines }: Replaced): string {
  if (lines === undefined) return `It replaces ${path}, if that exists.`
  return `It replaces all of ${path}, which has ${lines === 1 ? 'one line' : `${lines} lines`} now.`
}
