import { useQuery } from '@tanstack/react-query'
import { ask, Problem } from '../wire/api'

// A Replaced is what writing a file would do away with; without lines it is not
// known whether there is anything.
export interface Replaced {
  path: string
  lines?: number
}

// useReplaced looks at the file that a call wants to write: null, if there is none
// and nothing is lost. Of other tools there is nothing to say.
export function useReplaced(tool: string, show: string): Replaced | null {
  const path = tool === 'write_file' ? written(show) : undefined
  const file = useQuery({
    queryKey: ['file', path],
    queryFn: async ({ signal }) => {
      try {
        const { content } = await ask<{ content: string }>('GET', `/api/file?path=${encodeURIComponent(path!)}`, { signal })
        return content.replace(/\n$/, '').split('\n').length
      } catch (error) {
        if (error instanceof Problem && error.status === 404) return 0
        throw error
      }
    },
    enabled: path !== undefined,
    retry: false,
    staleTime: 2_000,
  })
  if (tool !== 'write_file') return null
  if (file.data === 0) return null
  return { path: path ?? 'what is there', lines: file.data }
}

// written is the file that the text of an approval names, as Go quotes it.
export function written(show: string): string | undefined {
  const named = /^Write \d+ bytes to ("(?:[^"\\]|\\.)*"), replacing it if it exists:/.exec(show)
  try {
    return named === null ? undefined : (JSON.parse(named[1]!) as string)
  } catch {
    return undefined
  }
}

export function wordsOf({ path, lines }: Replaced): string {
  if (lines === undefined) return `It replaces ${path}, if that exists.`
  return `It replaces all of ${path}, which has ${lines === 1 ? 'one line' : `${lines} lines`} now.`
}
