import { useQuery } from '@tanstack/react-query'
import { Spinner } from '../../ui/Spinner'
import { inputImages } from '../model/log'
import { classes } from '../../ui/classes'

// A source names an image by its input and number: the images themselves are in
// the log, and fetched when somebody looks.
export function imageSource(inputId: string, at: number): string {
  return `${inputId}#${at}`
}

export function InputImage({ source, name }: { source: string; name: string }) {
  const [inputId, at] = source.split('#')
  const { data, isPending } = useQuery({
    queryKey: ['input-images', inputId],
    queryFn: ({ signal }) => inputImages(inputId!, signal),
    staleTime: Infinity,
    gcTime: 5 * 60_000,
  })
  const url = data?.[Number(at)]
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
        <span className="px-3 text-xs text-ink-soft">{name} is not there</span>
      )}
    </div>
  )
}
