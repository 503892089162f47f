import { memo } from 'react'
import type { ChatMessage } from '../model/message'
import { InputImage } from './InputImage'
import { Prose } from './Prose'
import { Fold } from './Fold'

const long = 4000

export const UserMessage = memo(function UserMessage({ message }: { message: ChatMessage }) {
  const text = message.text
  return (
    <article
      aria-label={message.from === 'parent' ? 'The parent agent said' : 'You said'}
      className="flex flex-col items-end gap-1.5"
    >
      {message.from === 'parent' && <p className="text-xs text-ink-soft">from the parent agent</p>}
      {message.images !== undefined && (
        <div className="flex flex-wrap justify-end gap-2">
          {message.images.map((image, at) => (
            <InputImage key={image} source={image} name={`Image ${at + 1}`} />
          ))}
        </div>
      )}
      <div
        className="max-w-[85%] rounded-2xl rounded-br-md bg-sunken px-4 py-2 break-words whitespace-pre-wrap"
        title={message.timestampMs === undefined ? undefined : new Date(message.timestampMs).toLocaleString()}
      >
        {text.length <= long ? (
          <Prose>{text}</Prose>
        ) : (
          <>
            <Prose>{text.slice(0, long)}</Prose>
            <Fold head={`${text.length - long} more characters`}>
              <Prose>{text.slice(long)}</Prose>
            </Fold>
          </>
        )}
      </div>
    </article>
  )
})
