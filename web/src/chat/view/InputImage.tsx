import { useQuery } from '@tanstack/react-query'
import { Spinner } from '../../ui/Spinner'
import { readLog } from '../../wire/log'
import { classes } from '../../ui/classes'
import { Exact } from '../../ui/Mono'
import { documentIn, urlOf } from '../model/images'
import type { ChatMessage } from '../model/message'

// inputImages returns the images that were sent with an input, as data URLs.
async function inputImages(inputId: string, signal?: AbortSignal): Promise<string[]> {
  const cut = inputId.lastIndexOf('.')
  const after = Number(inputId.slice(cut + 1)) - 1
  const [event] = await readLog(inputId.slice(0, cut), { after, until: () => true, signal })
  const images = event?.type === 'InputReceived' ? (event.body.images ?? []) : []
  return images.map(urlOf)
}

// imagesOf returns the images of a message, for sending it again.
export async function imagesOf(message: Pick<ChatMessage, 'images'>): Promise<string[] | undefined> {
  const { images } = message
  if (images === undefined || images.length === 0) return undefined
  const [first] = images
  const all = first!.startsWith('data:') ? images : await inputImages(first!.split('#')[0]!)
  return all.filter((url) => url !== '')
}

// InputImage shows an image, or the name of a document, given its input and number. Images are in the log, and are
// loaded when shown.
export function InputImage({ source, name }: { source: string; name: string }) {
  const whole = source.startsWith('data:')
  const [inputId, at] = source.split('#')
  const { data, isPending } = useQuery({
    queryKey: ['input-images', inputId],
    queryFn: ({ signal }) => inputImages(inputId!, signal),
    enabled: !whole,
    staleTime: Infinity,
    gcTime: 5 * 60_000,
  })
  const url = whole ? source : data?.[Number(at)]
  const document = documentIn(url ?? '')
  if (document !== undefined)
    return (
      <a
        href={url}
        download={document}
        className="flex max-w-60 items-center rounded-lg border border-line bg-sunken px-3 py-1.5 text-sm hover:underline"
      >
        <span className="min-w-0 truncate font-mono">
          <Exact>{document}</Exact>
        </span>
      </a>
    )
  return (
    <div
      className={classes(
        'flex min-h-24 min-w-24 items-center justify-center',
        'overflow-hidden rounded-lg border border-line bg-sunken',
      )}
    >
      {url ? (
        <img src={url} alt={name} className="max-h-56 max-w-full object-contain" />
      ) : isPending ? (
        <Spinner word="Image" />
      ) : (
        <span className="px-3 text-xs text-ink-soft">{name} is not available</span>
      )}
    </div>
  )
}
