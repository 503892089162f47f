import { useRouter } from '@tanstack/react-router'
import { LinkIcon } from '../ui/icons'
import { fields, str } from '../wire/read'

const tools = new Set(['read_file', 'write_file', 'edit_file'])

// FileLink links a tool call to its file; for other calls it renders nothing. A tool line is also shown without a
// router: then it is a plain link.
export function FileLink({ tool, args, session }: { tool: string; args: unknown; session: string }) {
  const router = useRouter({ warn: false }) as ReturnType<typeof useRouter> | null
  const path = str(fields(args).path)
  if (!tools.has(tool) || path === '') return null
  return (
    <a
      href={`/files?${new URLSearchParams({ path, session })}`}
      onClick={(event) => {
        if (router === null || event.ctrlKey || event.metaKey || event.shiftKey) return
        event.preventDefault()
        void router.navigate({ to: '/files', search: { path, session } as never })
      }}
      className="inline-flex items-center gap-1 text-xs text-accent underline underline-offset-2"
    >
      <LinkIcon /> Open the file
    </a>
  )
}
