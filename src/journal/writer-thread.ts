/** The thread that the writer runs in: what it hears and says goes through the thread's port. Nothing else is here. */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { runWriter } from './writer.ts';
import { laterByTimer } from './later.ts';
import type { ToWriter, WriterOptions, WriterPort } from './writer-messages.ts';

const portOf = (port: MessagePort): WriterPort => ({
  hear: (hear) => void port.on('message', hear),
  next: () => {
    const received: { readonly message: unknown } | undefined = receiveMessageOnPort(port);
    return received?.message as ToWriter | undefined;
  },
  say: (message) => port.postMessage(message),
  later: laterByTimer,
  close: () => port.close(),
});

if (parentPort !== null) runWriter(portOf(parentPort), workerData as WriterOptions);
