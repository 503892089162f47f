import { why } from '../../ui/ErrorState'
import { toast } from '../../ui/toast'
import { send } from '../../wire/api'

export type ExportAs = 'copy' | 'markdown' | 'html' | 'jsonl'

// exportChat has the server export a conversation, and copies it or saves it as a file.
export async function exportChat(session: string, as: ExportAs): Promise<void> {
  try {
    const format = as === 'copy' ? 'markdown' : as
    const response = await send('GET', `/api/v1/sessions/${session}/export?format=${format}`)
    if (as === 'copy') {
      await navigator.clipboard.writeText(await response.text())
      toast('The conversation is copied as Markdown.')
      return
    }
    const name = /filename="?([\w.-]+)/.exec(response.headers.get('Content-Disposition') ?? '')?.[1]
    const url = URL.createObjectURL(await response.blob())
    const link = document.createElement('a')
    link.href = url
    link.download = name ?? `conversation.${format}`
    link.click()
    setTimeout(() => URL.revokeObjectURL(url), 60_000) // the download has begun by then
  } catch (error) {
    toast(`The conversation was not exported. ${why(error)}`, 'failed')
  }
}
