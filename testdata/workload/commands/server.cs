// A server of the tabular data stream (MS-TDS) that answers commands by their first word: `quick` ends at once,
// `rows` has a row and no end, and others have no answer.
using System;
using System.Collections.Generic;
using System.IO;
using System.Net;
using System.Net.Sockets;
using System.Text;
using System.Threading;

class Server
{
    const byte Batch = 1, Response = 4, Login = 16, Prelogin = 18;
    // The last packet of a message.
    const byte Last = 1;

    readonly TcpListener listener = new TcpListener(IPAddress.Loopback, 0);
    int received;

    internal Server()
    {
        listener.Start();
        Thread acceptor = new Thread(Accept);
        acceptor.IsBackground = true;
        acceptor.Start();
    }

    internal int Port { get { return ((IPEndPoint)listener.LocalEndpoint).Port; } }

    // Waits for a number of commands.
    internal void Await(int count)
    {
        while (Volatile.Read(ref received) < count) Thread.Sleep(5);
    }

    void Accept()
    {
        while (true)
        {
            Socket socket = listener.AcceptSocket();
            Thread thread = new Thread(() => Serve(new NetworkStream(socket, true)));
            thread.IsBackground = true;
            thread.Start();
        }
    }

    void Serve(Stream stream)
    {
        byte type;
        byte[] message;
        while ((message = Receive(stream, out type)) != null)
        {
            if (type == Prelogin) Send(stream, Last, PreloginAnswer());
            else if (type == Login) Send(stream, Last, LoginAnswer());
            else if (type == Batch) Answer(stream, Text(message));
        }
    }

    void Answer(Stream stream, string text)
    {
        if (text.StartsWith("quick")) Send(stream, Last, Done());
        else if (text.StartsWith("rows")) Send(stream, 0, Row());
        Interlocked.Increment(ref received);
    }

    static byte[] Read(Stream stream, int count)
    {
        byte[] bytes = new byte[count];
        for (int at = 0; at < count;)
        {
            int read = stream.Read(bytes, at, count - at);
            if (read == 0) return null;
            at += read;
        }
        return bytes;
    }

    static byte[] Receive(Stream stream, out byte type)
    {
        MemoryStream message = new MemoryStream();
        while (true)
        {
            type = 0;
            byte[] header = Read(stream, 8);
            if (header == null) return null;
            type = header[0];
            byte[] bytes = Read(stream, (header[2] << 8 | header[3]) - 8);
            if (bytes == null) return null;
            message.Write(bytes, 0, bytes.Length);
            if ((header[1] & Last) != 0) return message.ToArray();
        }
    }

    static void Send(Stream stream, byte status, byte[] bytes)
    {
        int length = bytes.Length + 8;
        byte[] packet = new byte[length];
        packet[0] = Response;
        packet[1] = status;
        packet[2] = (byte)(length >> 8);
        packet[3] = (byte)length;
        packet[6] = 1;
        bytes.CopyTo(packet, 8);
        stream.Write(packet, 0, length);
    }

    // The text of a batch, after its headers.
    static string Text(byte[] message)
    {
        int headers = BitConverter.ToInt32(message, 0);
        return Encoding.Unicode.GetString(message, headers, message.Length - headers);
    }

    // The version, no encryption, and no sessions in one connection.
    static byte[] PreloginAnswer()
    {
        return new byte[] { 0, 0, 16, 0, 6, 1, 0, 22, 0, 1, 4, 0, 23, 0, 1, 255, 15, 0, 7, 208, 0, 0, 2, 0 };
    }

    static byte[] LoginAnswer()
    {
        byte[] name = Encoding.Unicode.GetBytes("held");
        List<byte> answer = new List<byte> { 0xAD, (byte)(10 + name.Length), 0, 1, 0x74, 0, 0, 4, (byte)(name.Length / 2) };
        answer.AddRange(name);
        answer.AddRange(new byte[] { 15, 0, 7, 208 });
        answer.AddRange(Done());
        return answer.ToArray();
    }

    static byte[] Done() { return new byte[] { 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }; }

    // A column of numbers, and a row.
    static byte[] Row()
    {
        return new byte[] { 0x81, 1, 0, 0, 0, 0, 0, 0, 0, 0x38, 1, (byte)'n', 0, 0xD1, 7, 0, 0, 0 };
    }
}
